"""The report's section on what answers attend to: words, a picture, two tables."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from knowformer_lab.report.cells import Section, linked, markdown_table
from knowformer_lab.report.pictures import BLUE, GREY, PALE_BLUE, figure_of, plain, save_picture
from knowformer_lab.report.summary import Summary
from knowformer_lab.studies.attention import (
    AnswerStudy,
    AttentionStudy,
    Candidate,
    Compared,
    Fractions,
    Kin,
    Named,
    QuestionStudy,
)

NUM_NAMED = 5  # of the model's best answers, in the table
LONGEST = 30  # letters of a name in the picture
COLORS: dict[Kin, tuple[str, str]] = {
    "answer": (BLUE, "another known answer of the question"),
    "tail": (PALE_BLUE, "a known tail of the relation"),
    "none": (GREY, "neither"),
}


def attention(summaries: list[Summary], folder: Path) -> Section:
    """The appendix's figure of attention."""
    ready = [(s, _studies(s)) for s in summaries if s.results]
    words = [
        "Whom does an answer attend to? For five questions the appendix pictures the ten entities "
        "with the largest attention, and reads a pattern in them: nutrients of an egg attend to "
        "each other. It gives no figures, and does not say which answer, layer or head it shows. "
        "So the pattern is counted here, for every test answer of a question, with attention "
        "averaged over layers and heads: what are the ten entities that get most of it?",
        "- *Tails* are known tails of the question's relation, whoever the head is.\n"
        "- *Answers* are other known answers of the same question. What the paper defines as query "
        "prototypes lies between the two.\n"
        "- *Chance* is the same share among entities with about as many facts: attention might go "
        "to well-connected entities of any kind.\n"
        "- *Influence* takes the ten entities that the answer gains most by attending to, as "
        "`knowformer explain` does; large attention alone is "
        "[not yet a reason](../../docs/decisions/0014-evidence-for-an-answer.md).",
        *(_paragraph(summary, studies) for summary, studies in ready),
        "Pictured is, for each question, the test answer that the model ranks best."
        + "".join(_in_common(studies[0]) for _, studies in ready),
    ]
    shown = [question for _, studies in ready for question in studies[0].questions]
    draw = (lambda: draw_attention(shown, folder / "attention.png")) if shown else None
    return Section("Attention", words, _tables(ready), draw)


def readable(named: Named) -> str:
    """Returns a name for people: without an identifier, unless it is all that tells it apart."""
    if named.label.endswith(f"({named.entity})"):
        return named.entity  # the label file gives the same name to another entity
    return re.sub(r" \(Q\d+\)$", "", named.label)


def draw_attention(questions: Sequence[QuestionStudy], path: Path) -> Path:
    """A panel of bars per question; the color says what an attended entity is."""
    from matplotlib.patches import Patch

    columns = min(2, len(questions))
    rows = -(-len(questions) // columns)
    figure = figure_of(5.0 * columns, 2.7 * rows + 0.4)
    first: Any = None
    for number, question in enumerate(questions, start=1):
        axis = first = figure.add_subplot(rows, columns, number, sharex=first)
        _draw_panel(axis, question)
    handles = [Patch(color=color) for color, _ in COLORS.values()]
    names = [name for _, name in COLORS.values()]
    figure.legend(handles, names, loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    figure.supxlabel("attention, as a multiple of even attention", fontsize=10)
    return save_picture(figure, path)


def _draw_panel(axis: Any, question: QuestionStudy) -> None:
    entries = list(reversed(question.attended))
    for row, entry in enumerate(entries):
        axis.barh(row, entry.value - 1, left=1, color=COLORS[entry.kin][0], height=0.7)
    names = [readable(entry) for entry in entries]
    short = [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in names]
    axis.set_yticks(range(len(entries)), short, fontsize=8)
    best = question.answers[0]
    title = f"{_asked(question)}\n{readable(best)}, rank {best.rank:g}, attends to"
    axis.set_title(title, fontsize=9, loc="left")
    axis.locator_params(axis="x", nbins=5)
    plain(axis)


def _studies(summary: Summary) -> list[AttentionStudy]:
    return [AttentionStudy.model_validate(result.study) for result in summary.results]


def _asked(question: QuestionStudy) -> str:
    named = f"({readable(question.head)}, {question.relation.label}, ?)"
    return question.published_as or named


def _answers(studies: list[AttentionStudy], number: int) -> list[AnswerStudy]:
    """All test answers of one question, under all seeds."""
    return [answer for study in studies for answer in study.questions[number].answers]


Measure = Callable[[Fractions], float]
MEASURES: dict[str, Measure] = {"tails": lambda s: s.tails, "answers": lambda s: s.answers}


def _mean(compared: Iterable[Compared | None], measure: Measure) -> tuple[float, float] | None:
    """Returns the means of what attention has and of what chance has."""
    given = [each for each in compared if each is not None]
    if not given:
        return None
    return fmean(measure(each.found) for each in given), fmean(
        measure(each.chance) for each in given
    )


def _paragraph(summary: Summary, studies: list[AttentionStudy]) -> str:
    questions = studies[0].questions
    numbers = range(len(questions))
    pairs = {
        name: [_mean((a.attention for a in _answers(studies, n)), measure) for n in numbers]
        for name, measure in MEASURES.items()
    }
    measured = {name: [pair for pair in each if pair is not None] for name, each in pairs.items()}
    texts = {
        name: (
            f"{_percent(fmean(f for f, _ in each))}, against "
            f"{_percent(fmean(c for _, c in each))} by chance and "
            f"{_percent(fmean(MEASURES[name](q.everyone) for q in questions))} among all entities; "
            f"above chance on {sum(f > c for f, c in each)} of {len(each)}"
        )
        for name, each in measured.items()
    }
    answers = [answer for n in numbers for answer in _answers(studies, n)]
    influence = _mean((a.influence for a in answers), MEASURES["tails"])
    layers = [
        _mean((a.layers[at] for a in answers), MEASURES["tails"])
        for at in range(len(answers[0].layers))
    ]
    by_layer = ", ".join(_percent(pair[0]) for pair in layers if pair is not None)
    more = ""
    if influence is not None:
        by_influence, by_chance = map(_percent, influence)
        more = f" By influence, {by_influence} are tails ({by_chance} by chance)."
    return (
        f"**On {summary.experiment.dataset}, of the {studies[0].num_attended} entities that a test "
        f"answer attends to most, the share of tails is {texts['tails']} questions.** The share of "
        f"answers is {texts['answers']}. Tails by layer, first to last: {by_layer}.{more} Of the "
        f"{len(answers)} test answers {sum(a.rank <= 10 for a in answers)} are among the model's "
        "ten best, known ones set aside."
    )


def _in_common(study: AttentionStudy) -> str:
    """Says which entities get most attention whatever is asked, if there are any."""
    questions = study.questions
    shared = [
        readable(entry)
        for entry in questions[0].attended
        if all(entry.entity in {each.entity for each in q.attended} for q in questions)
    ]
    if len(questions) < 2 or not shared:
        return ""
    return (
        f" Of its {study.num_attended} entities, {len(shared)} are the same for all "
        f"{len(questions)} questions: {', '.join(shared)}."
    )


def _tables(ready: list[tuple[Summary, list[AttentionStudy]]]) -> str:
    fractions: list[Sequence[str]] = []
    best: list[Sequence[str]] = []
    for summary, studies in ready:
        for number, question in enumerate(studies[0].questions):
            name = linked(summary, _asked(question))
            answers = _answers(studies, number)
            fractions.append(
                (
                    name,
                    str(len(question.answers)),
                    *(
                        cell
                        for measure in MEASURES.values()
                        for cell in _fraction_cells(question, answers, measure)
                    ),
                )
            )
            first = question.answers[0]
            names = ", ".join(_candidate(each) for each in question.best[:NUM_NAMED])
            best.append((name, f"{readable(first)}, {first.rank:g}", names))
    header = ("question", "test answers")
    for name in MEASURES:
        header += (f"{name}, by attention", "by influence", "by chance", "of all entities")
    about = "\nThe model's best answers that the training graph does not hold; true ones in bold:\n"
    return "\n".join(
        [
            markdown_table(header, fractions),
            about,
            markdown_table(("question", "best test answer, rank", "best answers"), best, names=3),
        ]
    )


def _fraction_cells(
    question: QuestionStudy, answers: list[AnswerStudy], measure: Measure
) -> list[str]:
    attended = _mean((answer.attention for answer in answers), measure)
    influence = _mean((answer.influence for answer in answers), measure)
    assert attended is not None
    return [
        f"**{_percent(attended[0])}**",
        "-" if influence is None else _percent(influence[0]),
        _percent(attended[1]),
        _percent(measure(question.everyone)),
    ]


def _candidate(candidate: Candidate) -> str:
    name = readable(candidate)
    return name if candidate.truth == "none" else f"**{name}**"


def _percent(fraction: float) -> str:
    if 0 < fraction < 0.001:
        return "<0.1%"
    return (
        f"{100 * fraction:.0f}%" if fraction == 0 or fraction >= 0.01 else f"{100 * fraction:.1f}%"
    )
