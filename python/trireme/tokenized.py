"""Text fields as tokens, by a Hugging Face tokenizer file (docs/guides/bring_your_own_data.md).

reviews = trireme.Tokenized(trireme.open_records("reviews.jsonl"), "tokenizer.json", "text", max_length=128)
words = trireme.Padded(reviews, {"words": [64, 128]}, {"text": {0: "words"}})
"""

import os
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import Dataset

from trireme.errors import Error


class Tokenized(Dataset[dict[str, torch.Tensor]]):
    """A data set whose samples' texts become tokens, i64 [length], by the library `tokenizers`.

    data        a map-style data set whose samples are mappings, as those of open_records: texts are str, or bytes in
                UTF-8. Tensors of a sample stay; texts and bytes that are not named are left out.
    tokenizer   a `tokenizer.json`, whatever its model: WordPiece, BPE, Unigram; or a tokenizers.Tokenizer.
    fields      which fields become tokens, one or several.
    max_length  of a sample's tokens, with those that are put around; the rest is left out. None: all stay. What the
                file says of truncation and padding does not count.
    special     whether the file's own tokens (`[CLS]`, `</s>`) are put around.

    A function of the sample alone. Safe to use from several threads, as the library is; it releases the interpreter.
    Raises Error of kind `unavailable` without the library, `corrupt data` for a file that is no tokenizer and a text
    that is not UTF-8, `invalid argument` for a field that a sample does not have.
    """

    def __init__(
        self,
        data: Any,
        tokenizer: Any,
        fields: str | list[str],
        *,
        max_length: int | None = None,
        special: bool = True,
    ) -> None:
        if max_length is not None and max_length < 1:
            raise ValueError(f"max_length is {max_length}; give 1 or more, or None")
        self.data = data
        self.fields = [fields] if isinstance(fields, str) else list(fields)
        self.special = special
        self.tokenizer = _open(tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        if max_length is not None:
            self.tokenizer.enable_truncation(max_length)

    @property
    def vocabulary_size(self) -> int:
        """With the tokens that were added to the model's."""
        return int(self.tokenizer.get_vocab_size())

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        sample = self.data[index]
        missing = [field for field in self.fields if field not in sample]
        if missing:
            names = ", ".join(map(str, sample))
            raise _error(
                "invalid argument", f"sample {index} has no field '{missing[0]}'; it has {names}"
            )
        tokens = {field: self._tokens(sample[field], index, field) for field in self.fields}
        return {**_tensors(sample), **tokens}

    def _tokens(self, text: str | bytes, index: int, field: str) -> torch.Tensor:
        if isinstance(text, bytes):
            try:
                text = text.decode()
            except UnicodeDecodeError as failure:
                raise _error(
                    "corrupt data",
                    f"sample {index}, field '{field}': not UTF-8, byte {failure.start} is 0x{text[failure.start]:02x}",
                ) from failure
        ids = self.tokenizer.encode(text, add_special_tokens=self.special).ids
        return torch.tensor(ids, dtype=torch.int64)


def _tensors(sample: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {name: value for name, value in sample.items() if isinstance(value, torch.Tensor)}


def _open(given: Any) -> Any:
    try:
        import tokenizers
    except ImportError as failure:
        raise _error(
            "unavailable",
            "trireme.Tokenized wants the library `tokenizers`: pip install tokenizers",
        ) from failure
    if not isinstance(given, (str, os.PathLike)):
        return tokenizers.Tokenizer.from_str(given.to_str())  # its settings stay the caller's
    with open(given, encoding="utf-8") as file:
        text = file.read()
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as failure:  # the library's own type is Exception itself
        raise _error(
            "corrupt data",
            f"'{os.fspath(given)}' is no tokenizer.json as transformers' save_pretrained writes it: {failure}",
        ) from failure


def _error(kind: str, message: str) -> Error:
    error = Error(f"{kind}: {message}")
    error.kind, error.message = kind, message
    return error
