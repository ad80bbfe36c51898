from knowformer.training.clock import Clock


def test_time_runs_from_zero_or_from_what_an_earlier_process_took() -> None:
    now = [100.0]
    clock = Clock(lambda: now[0])
    now[0] += 3.0
    assert clock.elapsed() == 3.0
    clock.set(50.0)
    now[0] += 1.0
    assert clock.elapsed() == 51.0
