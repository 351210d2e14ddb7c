"""A log of records that survives what it has acknowledged. Format, version 2.

A store is a folder. All numbers are little-endian; `crc32` is that of zlib.

    DIR/identity                      what the folder is, and whose
    DIR/lock                          held by the one process that has the store open
    DIR/log/NNNNNNNNNNNNNNNN.segment  the log in pieces; 16 hex digits, from 1, without holes
                                      from the oldest that is still needed to the newest
    DIR/checkpoints/NN….checkpoint    snapshots of what the log adds up to; 16 hex digits
    DIR/aside/                        for people: bytes that recovery cut off a torn log,
                                      damaged checkpoints, what is left of damaged messages

**Positions.** A place in the log is a 64-bit number: segment number in the upper half, offset in
the segment in the lower. Positions grow along the log.

**identity**, 64 bytes: `MERQSTOR` (8), version u32 = 2, zero u32, store id (16 bytes), time of
creation in seconds since 1970 u64, secret (16 random bytes, made with the store), zero u32, crc32
of the 60 bytes before it u32. Of whatever version, it begins with these 12 bytes, ends with the
crc32 of all before, and has at most 4096 bytes. A store of another version is refused. While a
store is made the file is called `identity.draft`; it gets its name when the first segment is
durable, so a store without any segment has lost it.

**Key.** crc32 of store id and secret, 32 bytes. The checksum of a frame's header starts from it
(as if the header were preceded by those 32 bytes), so that nobody who only sends messages can make
bytes that pass for a frame of this store.

**Segment**: a header of 64 bytes, then frames. Header: `MERQSEGM` (8), version u32 = 2, zero u32,
segment number u64, store id (16 bytes), sequence number of its first frame u64, zeros (12), crc32
of the 60 bytes before it u32. Space is reserved ahead, so a segment usually ends with zeros.

**Frame**: what was appended in one piece, and comes back whole or not at all. Header of 40 bytes:
`FRAM` (4), length of the payload u32, sequence number u64 (1, 2, 3 … along the whole log), the
position up to which the log was known to be durable when the frame was written u64, number of
records u32, crc32 of the headers of all records one after the other u32, zero u32, crc32 of the key
and the 36 bytes before it u32. Then the payload and zeros up to a multiple of 8. A frame never
spans two segments.

**Payload**: the records one after the other, each with a header of 12 bytes: length of its data
u32, crc32 of its data u32, kind u8, zeros (3). What kinds there are and what their data means is
the business of whoever writes them; kind 0 does not exist. A frame is *whole* if its records fill
the payload and all these checksums are right: every byte of data is summed once, and a record can
be read and checked alone, without its frame.

**Checkpoint**: a header of 64 bytes, then sections. Header: `MERQCKPT` (8), version u32 = 2, number
of sections u32, store id (16 bytes), position up to which the log is contained in the checkpoint
u64, sequence number of the next frame there u64, number of the oldest segment that is still needed
u64 (0 in older checkpoints: unknown), zeros (4), crc32 of the 60 bytes before it u32.
Section: length u64, crc32 of length, kind (as the 12 bytes u64, u32) and data u32, kind u32, data.
A checkpoint is written under another name, made durable and renamed, after the log was durable up
to its position; the newest counts, and those before it are removed. One whose checksums are wrong
is done without, if one before it is there or the log from segment 1 on; the log must reach the
position that its header says, if that is whole. It is moved to `aside` then.

**Where the log ends.** Frames are read from the newest checkpoint on. A place without a frame
(zeros to the end of the segment) is where the segment ends. Anything else that is not a whole frame
with the next sequence number is *torn* if nothing shows that it had become durable: it is cut off
and kept in `aside`. It is *corrupt*, and the store is refused with file and offset, if the
header of a later frame says that the log was durable beyond this place, or if a later segment
exists: that header, whatever became of the rest of its frame, or the segment's first sync, came
after everything before it was on disk. The newest segment may lack its header if no frame is in it
and no checkpoint ends in it: it was begun and never became durable. A frame's mark counts only if
the checksum of its header is right, and if it can be true: not beyond its own frame, and with a
sequence number that the bytes between have room for.

What recovery has found is made durable before the store is open: what a killed process left in the
system's memory, or a failing sync forgot, is written again, and the names are synced.

What this package does: `disk` touches files, `records` knows frames, `log` appends and reads,
`recovery` opens, `checkpoints` keeps snapshots. Beside them, with nothing in common but this page,
`inspection` checks a store (over `viewing`, `reading`, `scanning` and `findings`), and `backup`
copies one. None of them knows anything of queues or messages.
"""
