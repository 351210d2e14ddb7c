"""Which session carries the messages of which outgoing queue: [MS-MQQB] 3.1.5.2 and 3.1.6.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merq.testing.strict_peer.session import Session, State

if TYPE_CHECKING:
    from merq.testing.strict_peer.outgoing import OutgoingQueue
    from merq.testing.strict_peer.peer import StrictPeer


class Connections:
    """The sessions of a strict peer.

    Attributes:
        sessions: All that are not closed.
        closures: Why sessions were closed by this side.
    """

    def __init__(self, peer: StrictPeer) -> None:
        self._peer = peer
        self._dials: list[Session] = []
        self.sessions: list[Session] = []
        self.closures: list[str] = []

    def accept(self, address: str, now: float) -> Session:
        """[MS-MQQB] 3.1.5.10."""
        session = Session(self._peer, address, now, initiator=False)
        self.sessions.append(session)
        return session

    def take_dials(self) -> list[Session]:
        """Sessions whose connections are to be made."""
        dials, self._dials = self._dials, []
        return dials

    def go_on(self, now: float) -> None:
        """Queues that have something to send get sessions, and messages go out."""
        self._attach(now)
        for session in list(self.sessions):
            self._peer.outgoing.pump(session, now)

    def _attach(self, now: float) -> None:
        for queue in list(self._peer.outgoing.queues.values()):
            if queue.session is not None or not queue.table or queue.is_on_hold:
                continue
            if queue.retry_at is not None and queue.retry_at > now:
                continue
            queue.retry_at = None
            session = self._session_for(queue)
            if session is None and queue.name.is_direct:
                session = Session(self._peer, queue.name.host, now, initiator=True)
                self.sessions.append(session)
                self._dials.append(session)
            if session is not None:
                session.queues.append(queue)
                queue.session = session
                queue.queue_up_all()

    def _session_for(self, queue: OutgoingQueue) -> Session | None:
        shares = self._peer.readings.shares_sessions and queue.name.is_direct
        for session in self.sessions:
            is_usable = session.initiator or session.state is State.OPEN
            is_there = session.address == queue.name.host
            if shares and is_usable and is_there:
                return session
            if not queue.name.is_direct and is_usable and session.remote == queue.name.guid:
                return session
        return None

    def closed(self, session: Session, now: float) -> None:
        """[MS-MQQB] 3.1.5.9: what still waits is tried again later."""
        self.sessions.remove(session)
        if session.reason:
            self.closures.append(session.reason)
        for queue in session.queues:
            queue.session = None
            queue.resend_at = None
            queue.retry_at = now + self._peer.readings.retry_s if queue.table else None
        session.queues.clear()
