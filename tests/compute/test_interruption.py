"""Ctrl-C between pieces of work."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from mercer.compute import heard


def test_the_first_ctrl_c_is_a_word_and_the_handler_is_put_back(ctrl_c):
    stop = threading.Event()
    with heard(stop):
        ctrl_c()
        assert stop.is_set()


def test_the_second_ctrl_c_is_heard(ctrl_c):
    stop = threading.Event()
    with pytest.raises(KeyboardInterrupt), heard(stop):
        ctrl_c()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)
        raise AssertionError("not reached")


def test_other_threads_cannot_listen():
    entered = []

    def work():
        with heard(threading.Event()):
            entered.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [signal.getsignal(signal.SIGINT)]


def test_what_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with heard(threading.Event()):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
