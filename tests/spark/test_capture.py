"""The flow `capture`: files of network traffic to a table of packets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.pages import ROOT, program_of
from kit.vectors import frame
from merq.spark.flows.capture import Settings, captures, run
from merq.spark.flows.running import Quiet
from merq.spark.options import BadOption
from unit.capture.building_captures import (
    SYN,
    UDP,
    ipv4,
    pcap,
    pcap_header,
    pcap_record,
    pcapng,
    to_client,
    to_server,
    udp,
)

pytestmark = pytest.mark.xdist_group("spark")

ESTABLISH, PARAMETERS, MESSAGE, SESSION_ACK = frame(3), frame(5), frame(7), frame(8)
ASKED = ESTABLISH + PARAMETERS + MESSAGE


def conversation() -> list[bytes]:
    """A session with one message, cut into segments of 500 bytes, and a ping before it."""
    return [
        ipv4(udp(frame(1)), protocol=UDP),
        to_server(flags=SYN, seq=0),
        *(to_server(ASKED[at : at + 500], seq=1 + at) for at in range(0, len(ASKED), 500)),
        to_client(SESSION_ACK, seq=1),
    ]


def test_packets_of_many_files_become_one_table(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "captures" / "below"
    folder.mkdir(parents=True)
    (folder / "one.pcap").write_bytes(pcap(conversation()))
    (folder.parent / "two.pcapng").write_bytes(pcapng(conversation()))
    (folder.parent / "notes.txt").write_text("not a capture")
    (folder.parent / "broken.cap").write_bytes(b"what is this, then?")
    cut = pcap_header() + pcap_record(conversation()[0]) + pcap_record(conversation()[1])[:-3]
    (folder.parent / "cut.pcap").write_bytes(cut)
    settings = Settings(input=(str(tmp_path / "captures"),), output=str(tmp_path / "out"))
    summary = run(spark, settings, Quiet())
    assert summary.figures["files"] == 4
    shown = program_of(ROOT / "docs" / "guide" / "pipelines.md", "captured", settings.output)
    exec(shown, {"spark": spark})  # noqa: S102 - it is our own page
    table = spark.read.parquet(f"{settings.output}/packets")
    whole = table.where(table["file"].endswith("one.pcap")).orderBy("number").collect()
    by_kind = {row["packet"]: row for row in whole}
    assert set(by_kind) == {
        "PingRequest",
        "EstablishConnection",
        "ConnectionParameters",
        "UserMessage",
        "SessionAck",
    }
    assert len(whole) == len(by_kind)
    message, acknowledgment = by_kind["UserMessage"], by_kind["SessionAck"]
    tree = json.loads(message["tree"])
    header = tree["user_header"]
    assert message["size"] == len(MESSAGE) == tree["size"]
    assert message["message_id"] == f"{{{header['source_queue_manager']}}}\\{header['message_id']}"
    assert message["label"] == tree["message_properties_header"]["label"]
    assert message["source"].startswith("127.0.0.2")
    assert message["destination"] == "127.0.0.3:1801"
    assert message["time"] is not None
    assert message["session_ack"] is None
    assert acknowledgment["session_ack"] == 1
    assert acknowledgment["session_window"] == 64
    assert acknowledgment["source"] == "127.0.0.3:1801"
    assert [row["packet"] for row in whole] == [
        row["packet"]
        for row in table.where(table["file"].endswith(".pcapng")).orderBy("number").collect()
    ]
    errors = {Path(row["file"]).name: row for row in table.where("error is not null").collect()}
    assert set(errors) == {"broken.cap", "cut.pcap"}
    assert "expected a pcap or pcapng file" in errors["broken.cap"]["error"]
    assert summary.figures["errors"] == 2
    assert summary.finding == "2 places of the captures could not be read"
    assert "broken.cap" in str(summary)


def test_each_file_is_a_task_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.pcap").write_bytes(pcap(conversation()))
    files = captures([str(tmp_path)])
    run(spark, Settings(input=(str(tmp_path),), output=str(tmp_path / "out")), Quiet())
    assert len(files) == len(list((tmp_path / "out" / "packets").glob("*.parquet"))) == 3


def test_files_are_named_or_found_in_folders_and_taken_once(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(b"")
    assert captures([str(file), str(tmp_path)]) == [str(file.resolve())]
    with pytest.raises(BadOption, match="not there"):
        captures([str(tmp_path / "none")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadOption, match="no files"):
        captures([str(tmp_path / "empty")])
