from knowformer.training.clock import Clock


def test_earlier_processes_count_and_so_does_what_this_one_did_before() -> None:
    now = [100.0]
    clock = Clock(lambda: now[0])
    now[0] += 3.0
    assert clock.elapsed() == 3.0
    clock.add(50.0)
    now[0] += 1.0
    assert clock.elapsed() == 54.0
