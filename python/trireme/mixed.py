"""Several data sets in proportion to their weights (docs/guides/bring_your_own_data.md).

both = trireme.Mixed([(wiki, 3), (shop, 1)], seed=7)      # w w s w, w w s w, ..
trireme.Session(model, loss, both, batch_size=256, microbatch_size=32)
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trireme import _core

if TYPE_CHECKING:
    from trireme.data import Samples


class Mixed:
    """Samples of several data sets, one after the other in proportion to their weights, as data::mix in C++.

    parts        (data set, weight): each as for Session, also Padded or SkipDamaged, with samples of the same fields,
                 shapes and dtypes; weights are whole numbers, how many samples of a round are its.
    seed         of the orders in which the data sets are met.
    shuffled     each anew in each of its epochs; else it is met as it lies.
    num_samples  of an epoch of the mixture; None: as many as the data sets have together.

    Order     a function of weights, seed and place: each data set is met epoch after epoch, each of its samples once in
              each. A Session that trains on it does not shuffle it once more, unless it is given shuffled=True.

    Several uses: Repeated(Mixed(..), ..), whose `augment` is called with samples of all parts. Raises TypeError or
    ValueError here, Error of kind `invalid argument` in the Session, where parts do not fit.
    """

    def __init__(
        self,
        parts: "Sequence[tuple[Samples, int]]",
        *,
        seed: int = 0,
        shuffled: bool = True,
        num_samples: int | None = None,
    ) -> None:
        if not parts:
            raise ValueError("a mixture has one data set at least: [(data, weight), ..]")
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"num_samples is {num_samples}; give 1 or more")
        for part in parts:
            if not isinstance(part, tuple) or len(part) != 2 or not isinstance(part[1], int):
                raise TypeError(
                    "parts are (data set, weight), the weight a whole number: [(wiki, 3), (shop, 1)]"
                )
        self.parts = list(parts)
        self.seed = seed
        self.shuffled = shuffled
        self.num_samples = num_samples

    def source(self, of_parts: Sequence[_core.Source]) -> _core.Source:
        """Of the parts' sources, in their order."""
        weights = [weight for _, weight in self.parts]
        return _core.mixed_source(
            list(zip(of_parts, weights, strict=True)),
            self.seed,
            self.shuffled,
            self.num_samples or 0,
        )
