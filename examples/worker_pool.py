r"""A pool of workers, each job done in a transaction, and jobs that can never be done set aside.

    python examples/worker_pool.py

A worker receives a job and sends its result in one transaction: a worker that dies leaves the job
to the others. Job 7 makes every worker fail. Each time it goes back to the front of its queue;
after the third time the queue manager moves it to the subqueue `poison`, and the others go on.
"""

from __future__ import annotations

import threading

from local_service import local_service

import merq

JOBS, RESULTS = r".\private$\jobs", r".\private$\results"
WORKERS = 4
JOB_COUNT = 20
BAD_JOB = 7


def do(job: merq.ReceivedMessage) -> str:
    """Does one job, or fails."""
    if job.body == BAD_JOB:
        raise ValueError(f"nobody can do job {BAD_JOB}")
    return f"job {job.body!r} is done"


def work(url: str) -> None:
    """Does jobs until there are none for a second."""
    with merq.connect(url) as mq:  # a connection of its own: transactions belong to one
        jobs, results = mq.queue(JOBS), mq.queue(RESULTS)
        while True:
            try:
                with mq.transaction() as tx:  # commits, or aborts on an exception
                    job = jobs.receive(timeout=1, tx=tx)
                    results.send(do(job), tx=tx)
            except merq.ReceiveTimeout:
                return
            except ValueError as wrong:
                print(f"failed: {wrong}")


def main() -> None:
    """Twenty jobs for four workers."""
    with local_service() as url, merq.connect(url) as mq:
        jobs = mq.create_queue(JOBS, transactional=True, poison_after=3)
        results = mq.create_queue(RESULTS, transactional=True)
        with mq.transaction() as tx:
            jobs.send_many(range(JOB_COUNT), tx=tx)
        workers = [threading.Thread(target=work, args=(url,)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(f"{len(results)} of {JOB_COUNT} jobs are done, {len(jobs)} are left")
        for poison in jobs.subqueue("poison").peek_all():
            print(f"set aside after {poison.abort_count} failures: job {poison.body!r}")


if __name__ == "__main__":
    main()
