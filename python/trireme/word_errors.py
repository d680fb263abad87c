"""Word and character error rates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from trireme._packs import WordErrors

Texts = str | Sequence[str]
Costs = Literal["levenshtein", "sclite"]
_WHITE_SPACE = " \t\n\v\f\r"


def wer(reference: Texts, hypothesis: Texts) -> float:
    """Substitutions, deletions and insertions of the cheapest alignments over the words of the references. As
    `jiwer.wer`, but words end at any ASCII white space.

    reference, hypothesis   a text, or one for each utterance: their errors and words add up.
    Returns    it may exceed 1; infinity for errors without words, 0 without both.
    """
    return count_word_errors(reference, hypothesis).word_error_rate


def cer(reference: Texts, hypothesis: Texts) -> float:
    """The same of characters (code points), with spaces but those at the ends. As `jiwer.cer`."""
    return count_word_errors(
        [_spell(text) for text in _listed(reference)],
        [_spell(text) for text in _listed(hypothesis)],
    ).word_error_rate


def count_word_errors(
    reference: Texts,
    hypothesis: Texts,
    costs: Costs = "levenshtein",
    ignores_case: bool = False,
) -> "WordErrors":
    """Errors of all utterances, which add up over parts: `a + b`.

    costs          `sclite`: 4, 3, 3 for substitutions, deletions, insertions, as NIST's sclite aligns; else 1 each.
    ignores_case   of ASCII letters.
    Errors         trireme.Error where there are not as many hypotheses as references.
    Cost           words of a reference times words of its hypothesis; utterances are spread over torch's threads.
    """
    from trireme import _packs

    return _packs.count_word_errors(
        _listed(reference), _listed(hypothesis), _as_sclite(costs), ignores_case
    )


def align_words(
    reference: str, hypothesis: str, costs: Costs = "levenshtein", ignores_case: bool = False
) -> list[tuple[str, str, str]]:
    """The alignment that is counted, from the first word on: `match`, `substitution`, `insertion` or `deletion`, the
    reference's word and the hypothesis's, empty where there is none."""
    from trireme import _packs

    return _packs.align_words(reference, hypothesis, _as_sclite(costs), ignores_case)


def _listed(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _as_sclite(costs: Costs) -> bool:
    if costs not in ("levenshtein", "sclite"):
        raise ValueError(f"costs is 'levenshtein' or 'sclite', and is {costs!r}")
    return costs == "sclite"


def _spell(text: str) -> str:
    """Characters as words. White space becomes words of two letters or more, which no character is."""
    return " ".join(f"x{ord(c)}" if c in _WHITE_SPACE else c for c in text.strip())
