"""What we found: a page of sentences, each with figures from result files; silent without them."""

from collections.abc import Callable
from statistics import fmean

from knowformer.evaluation.bootstrap import bootstrap_interval
from knowformer_lab.report.cells import counted
from knowformer_lab.report.summary import Estimate, Summary, paired
from knowformer_lab.report.ultra_section import ZeroShot

Named = dict[str, Summary]
"""Summaries by the experiment's name."""


def findings(summaries: list[Summary], zero_shot: ZeroShot) -> str:
    """Returns the section, or nothing where there is nothing to say yet."""
    named = {summary.experiment.name: summary for summary in summaries}
    said = [sentence for find in FINDINGS if (sentence := find(named))]
    ties = _ties(named, zero_shot)
    said[1:1] = [ties] if ties else []
    return "## What we found\n\n" + "\n".join(f"- {each}" for each in said) + "\n" if said else ""


def _leak(named: Named) -> str:
    leaks = [
        r.study["leak"]
        for name, s in named.items()
        if name.startswith("selection/")
        for r in s.results
        if r.study
    ]
    if not leaks:
        return ""
    low, high = bootstrap_interval(leaks, seed=0)
    return (
        "**The leak in model selection.** The released code validates on test facts and keeps the "
        f"epoch that is best on them. In {counted(len(leaks), 'run')} of ours that would add "
        f"{fmean(leaks):+z.3f} MRR on average (95% interval {low:+z.3f} to {high:+z.3f}) and at "
        f"most {max(leaks):+z.3f}: little, except where test facts are few and a run swings. "
        "([Selection](#selection))"
    )


def _ties(named: Named, zero_shot: ZeroShot) -> str:
    reports = [r.evaluation for s in named.values() for r in s.results if r.evaluation]
    if not reports:
        return ""
    lost = max(report.realistic["mrr"] - report.pessimistic["mrr"] for report in reports)
    text = (
        "**Ties.** The released code lets the answer lose every tie, which flatters nobody. On "
        f"models trained here that costs at most {lost:.4f} MRR against the mean rank of ties."
    )
    if zero_shot:
        most = max(z["realistic"]["mrr"] - z["pessimistic"]["mrr"] for z in zero_shot.values())
        text += (
            f" A model that has never seen the graph ties more often: up to {most:.3f}, so "
            "zero-shot figures must say how they count."
        )
    return text


def _attention(named: Named) -> str:
    gains = {
        name.split("/")[1]: gain
        for name, summary in named.items()
        if name.startswith("ablation/") and name.endswith("/no_attention")
        if (gain := paired(named[name.replace("no_attention", "full")], summary)) is not None
    }
    if not gains:
        return ""
    each = "; ".join(f"{group} {_with_interval(gain)}" for group, gain in gains.items())
    intervals = [gain.interval for gain in gains.values()]
    clear = sum(i is not None and (i[0] > 0 or i[1] < 0) for i in intervals)
    verdict = (
        "No interval excludes zero"
        if not clear
        else f"{counted(clear, 'interval')} of {len(gains)} excludes zero"
    )
    return (
        f"**Attention.** What it adds to test MRR under the same seeds: {each}. {verdict}; the "
        f"paper has +0.013 on FB15k-237.{_in_views(named)} The formula is part of the reason: "
        "another entity weighs at most 2/V of what an entity weighs itself, so tens of "
        "thousands of entities leave attention next to no say. ([Ablation](#ablation))"
    )


def _in_views(named: Named) -> str:
    gap = _gain(named, "search/wn18rr_views/size_1000", "search/wn18rr_views/without_attention")
    return (
        f" In views of 1,000 entities of WN18RR it adds {gap.text(sign=True)} to the validation "
        f"MRR of a third of an epoch ({counted(gap.count, 'seed')})."
        if gap
        else ""
    )


def _rare_relations(named: Named) -> str:
    parts: list[str] = []
    for group in ("nell-995_v4_rare_relations", "wn18rr_v3_rare_relations"):
        base, swapped = (named.get(f"search/{group}/{run}") for run in ("baseline", "swaps_0.3"))
        if base and swapped and base.results and swapped.results:
            before, after = base.estimate("valid_mrr"), swapped.estimate("valid_mrr")
            if before and after:
                parts.append(f"from {before.text()} to {after.text()} on {base.experiment.dataset}")
    if not parts:
        return ""
    return (
        "**Rare relations.** Each relation has weights of its own, so one with two training facts "
        "learns nothing, and some test graphs live by such relations. Permuting three tenths of "
        "the relations among themselves, anew for each batch, raises validation MRR on relations "
        f"set apart {' and '.join(parts)}. ([Search](#search-of-settings))"
    )


def _views(named: Named) -> str:
    parts: list[str] = []
    for name, view in named.items():
        whole = named.get(name.replace("/view", "/whole"))
        if name.startswith("views/") and name.endswith("/view") and whole and whole is not view:
            ours, other = view.estimate("mrr"), whole.estimate("mrr")
            if ours and other:
                parts.append(
                    f"{view.experiment.group}: {ours.text()} in views, {other.text()} on the whole "
                    f"graph after {view.minutes()} minutes each"
                )
    if not parts:
        return ""
    return (
        "**Views.** A query that sees the part of the graph around its head, with entities of the "
        "right kind, costs a fraction of one that sees everything, and more queries teach more. "
        f"Test MRR at equal time, {'; '.join(parts)}. ([Views](#views))"
    )


def _links(named: Named) -> str:
    gap = _gain(named, "search/fb15k-237/hide_links", "search/fb15k-237/hide_facts")
    if gap is None:
        return ""
    return (
        "**FB15k-237 gives a hint in training that it takes away at test.** No held-out fact is "
        "about two entities that a training fact links, but many training facts are about two "
        "that another one links. Hiding every link between head and tail in training gains "
        f"{gap.text(sign=True)} validation MRR in a quarter of an epoch. The released code does "
        "so and the paper does not mention it; with and without, a figure is of another task."
    )


def _seeds(named: Named) -> str:
    spread = {
        name: estimate
        for name, summary in named.items()
        if name.startswith(("inductive/", "transductive/"))
        and summary.published("mrr") is not None
        and (estimate := summary.estimate("mrr")) is not None
        and estimate.deviation is not None
    }
    if not spread:
        return ""
    worst = max(spread, key=lambda name: spread[name].deviation or 0.0)
    return (
        f"**Seeds.** Of {counted(len(spread), 'figure')} with several seeds, "
        f"{worst} varies most: {spread[worst].text()} over {spread[worst].count}. The paper gives "
        "one figure each and no deviation, so a difference of that size says nothing there."
    )


def _gain(named: Named, one: str, other: str) -> Estimate | None:
    """The difference of two trials in validation MRR, seed by seed."""
    if one not in named or other not in named:
        return None
    return paired(named[one], named[other], "valid_mrr")


def _with_interval(gain: Estimate) -> str:
    interval = gain.interval
    between = f", {interval[0]:+z.3f} to {interval[1]:+z.3f}" if interval else ""
    return f"{gain.mean:+z.3f} ({counted(gain.count, 'seed')}{between})"


FINDINGS: tuple[Callable[[Named], str], ...] = (
    _leak,
    _attention,
    _rare_relations,
    _views,
    _links,
    _seeds,
)
