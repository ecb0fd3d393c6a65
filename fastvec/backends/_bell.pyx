# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=True
"""Bells: how the process backend and its workers wake each other, through words in memory that they share.

A process that waits sleeps in the kernel (a futex; outside of Linux it looks again and again). Waking it takes some 50
microseconds where its core has gone to sleep, too; so it may first look for a while, and let others run between looks.
The words are an int32 array (1 + workers, 16), a cache line a row:

    row 0      [0] events: how often a worker has finished    [1] the number of events that wakes the parent
               [2] how many lanes have been put into the ring (below)
    row 1 + w  [0] the last command of worker w: four times its number, and its kind, 1 to 3
               [2] the last that it has finished              [3] whether a reply to that is in the pipe
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

cimport numpy as cnp

cnp.import_array()

cdef extern from *:
    """
    #include <sched.h>
    #include <stdint.h>
    #include <time.h>
    #if defined(__linux__)
    #include <linux/futex.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    #endif

    static int32_t fv_load(const int32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
    static void fv_store(int32_t *word, int32_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
    static int32_t fv_increment(int32_t *word) { return __atomic_add_fetch(word, 1, __ATOMIC_ACQ_REL); }
    static int32_t fv_exchange(int32_t *word, int32_t value) {
        return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
    }
    static void fv_let_others_run(void) { sched_yield(); }

    /* Sleeps until woken, for at most so long, unless the word has another value already. */
    static void fv_sleep_on(int32_t *word, int32_t value, double seconds) {
        struct timespec time;
        time.tv_sec = (time_t)seconds;
        time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    #if defined(__linux__)
        syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
    #else
        if (seconds > 50e-6) { time.tv_sec = 0; time.tv_nsec = 50000; }
        if (fv_load(word) == value) nanosleep(&time, NULL);
    #endif
    }

    static void fv_wake(int32_t *word) {
    #if defined(__linux__)
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    #endif
    }

    static double fv_now(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
    }
    """
    int32_t fv_load(const int32_t *word) noexcept nogil
    void fv_store(int32_t *word, int32_t value) noexcept nogil
    int32_t fv_increment(int32_t *word) noexcept nogil
    int32_t fv_exchange(int32_t *word, int32_t value) noexcept nogil
    void fv_let_others_run() noexcept nogil
    void fv_sleep_on(int32_t *word, int32_t value, double seconds) noexcept nogil
    void fv_wake(int32_t *word) noexcept nogil
    double fv_now() noexcept nogil

WORDS = 16  # of a row


cdef inline int32_t *_row(cnp.ndarray words, Py_ssize_t row) noexcept:
    return <int32_t *>cnp.PyArray_DATA(words) + row * 16


cdef void _expect(int32_t *own, int32_t count) noexcept nogil:
    fv_store(own + 1, fv_load(own) + count)


cdef void _command(int32_t *row, int32_t kind) noexcept nogil:
    row[3] = 0
    # One word, so that number and kind are seen together; it may wrap.
    fv_store(row, <int32_t>((((<uint32_t>fv_load(row) >> 2) + 1) << 2) | <uint32_t>kind))
    fv_wake(row)


cdef void _wait_for_command(int32_t *row, int32_t done, double look_for, double seconds) noexcept nogil:
    cdef double end = fv_now() + look_for
    while fv_load(row) == done and fv_now() < end:
        fv_let_others_run()
    end = fv_now() + seconds
    while fv_load(row) == done and fv_now() < end:
        fv_sleep_on(row, done, end - fv_now() if end > fv_now() else 0.0)


cdef void _finish(int32_t *row, int32_t *parent, int32_t done, bint has_reply) noexcept nogil:
    row[3] = has_reply
    fv_store(row + 2, done)
    if fv_increment(parent) - fv_load(parent + 1) >= 0:
        fv_wake(parent)


cdef bint _wait_for_events(int32_t *own, double look_for, double seconds) noexcept nogil:
    cdef int32_t seen = fv_load(own), wanted = fv_load(own + 1)
    cdef double end = fv_now() + look_for
    while seen - wanted < 0 and fv_now() < end:
        fv_let_others_run()
        seen = fv_load(own)
    end = fv_now() + seconds
    while seen - wanted < 0 and fv_now() < end:
        fv_sleep_on(own, seen, end - fv_now() if end > fv_now() else 0.0)
        if fv_load(own) == seen:
            break  # time is over, or a signal came, which Python must see
        seen = fv_load(own)
    return seen - wanted >= 0


def expect(cnp.ndarray words not None, int32_t count):
    """The parent is to be woken when workers have finished so often more than now."""
    _expect(_row(words, 0), count)


def command(cnp.ndarray words not None, Py_ssize_t worker, int32_t kind):
    """Gives a worker a command of this kind."""
    _command(_row(words, 1 + worker), kind)


def wait_for_command(cnp.ndarray words not None, Py_ssize_t worker, int32_t done, double look_for, double seconds):
    """Waits until a worker has another command than ``done``, for at most so long; returns the one that it has."""
    cdef int32_t *row = _row(words, 1 + worker)
    if fv_load(row) == done:
        with nogil:
            _wait_for_command(row, done, look_for, seconds)
    return fv_load(row)


def finish(cnp.ndarray words not None, Py_ssize_t worker, int32_t done, bint has_reply):
    """Says that a worker has finished this command; a reply, if any, comes through the pipe after this."""
    _finish(_row(words, 1 + worker), _row(words, 0), done, has_reply)


def wait_for_events(cnp.ndarray words not None, double look_for, double seconds):
    """Waits for what the parent expects, for at most so long or until a signal; returns whether it has come."""
    cdef int32_t *own = _row(words, 0)
    cdef bint come
    with nogil:
        come = _wait_for_events(own, look_for, seconds)
    return come


# What waking and waiting take shows on threads too, which are there at once.


def echo(cnp.ndarray words not None, Py_ssize_t worker, double look_for, double seconds):
    """Is a worker without envs, in this thread: finishes commands at once, until none has come for so long."""
    cdef int32_t *row = _row(words, 1 + worker)
    cdef int32_t *parent = _row(words, 0)
    cdef int32_t done = 0
    with nogil:
        while True:
            _wait_for_command(row, done, look_for, seconds)
            if fv_load(row) == done:
                break
            done = fv_load(row)
            _finish(row, parent, done, False)
            if done & 3 == 0:
                break


def round_trip(cnp.ndarray words not None, int32_t kind, double look_for, double seconds):
    """Gives all workers a command, waits until they have finished, for at most so long, and returns the seconds taken.

    A command of kind 0 ends an echo."""
    cdef int32_t *own = _row(words, 0)
    cdef Py_ssize_t worker, count = cnp.PyArray_DIM(words, 0) - 1
    cdef double began = fv_now()
    with nogil:
        _expect(own, <int32_t>count)
        for worker in range(count):
            _command(own + 16 * (1 + worker), kind)
        _wait_for_events(own, look_for, seconds)
    return fv_now() - began


# Lanes that are stepped one by one: an int32 word (n,) a lane says what is asked of it, and lanes that are done go
# through a ring (n,) of words, in the order in which they are done. 0 stands for nothing in both.


def post(cnp.ndarray requests not None, Py_ssize_t lane, int32_t kind):
    """Asks something of a lane; what was written before this is there for who takes it."""
    fv_store(<int32_t *>cnp.PyArray_DATA(requests) + lane, kind)


def take(cnp.ndarray requests not None, Py_ssize_t lane):
    """What is asked of a lane, which is then not asked any more."""
    cdef int32_t *word = <int32_t *>cnp.PyArray_DATA(requests) + lane
    return fv_exchange(word, 0) if fv_load(word) else 0


def push(cnp.ndarray words not None, cnp.ndarray ring not None, int32_t lane, bint has_reply):
    """Says that a lane is done; a reply, if any, comes through the pipe after this."""
    cdef int32_t *parent = _row(words, 0)
    cdef int32_t place = (fv_increment(parent + 2) - 1) & 0x7fffffff
    fv_store(<int32_t *>cnp.PyArray_DATA(ring) + place % cnp.PyArray_SIZE(ring), 2 * (lane + 1) + has_reply)
    if fv_increment(parent) - fv_load(parent + 1) >= 0:
        fv_wake(parent)


def pop(cnp.ndarray ring not None, int64_t taken):
    """The next lane that is done, when ``taken`` have been: (lane, has_reply), or None."""
    cdef int32_t *word = <int32_t *>cnp.PyArray_DATA(ring) + (taken & 0x7fffffff) % cnp.PyArray_SIZE(ring)
    cdef int32_t found = fv_load(word)
    if found == 0:
        return None
    fv_store(word, 0)
    return found // 2 - 1, bool(found & 1)


def idle(cnp.ndarray words not None, Py_ssize_t worker, int32_t done):
    """Says that a worker has looked for lanes, which was this command."""
    fv_store(_row(words, 1 + worker) + 2, done)
