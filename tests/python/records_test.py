"""trireme.open_records: real files of every form, read from Python."""

import gzip
import importlib
import importlib.util
import io
import json
import multiprocessing
import pickle
import struct
import sys
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import trireme
from trireme.records import Records

STORE = Path(__file__).resolve().parents[1] / "remote" / "store_server.py"


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def shard(numbers: range) -> dict[str, bytes]:
    """Records of two fields each; those of the first are as long as their number says."""
    return {
        f"{n:03}.{ending}": content
        for n in numbers
        for ending, content in (("bin", bytes([n]) * (1 + 400 * n)), ("cls", b"%d" % (n % 3)))
    }


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "0.tar", tmp_path / "1.tar"]
    write_tar(paths[0], shard(range(5)))
    write_tar(paths[1], shard(range(5, 12)))
    return paths


def everything(records: Records) -> list[dict[str, bytes]]:
    return [dict(record) for record in records]


def test_tar_shards_are_a_sequence_of_records(shards: list[Path]) -> None:
    records = trireme.open_records(shards)
    assert len(records) == 12
    for n, record in enumerate(records):
        assert record["bin"] == bytes([n]) * (1 + 400 * n)
        assert dict(record) == {"bin": record["bin"], "cls": b"%d" % (n % 3)}
        assert list(record) == records.fields(n) == ["bin", "cls"]
    assert records.read(-1, "bin") == records[11]["bin"]
    assert [record["cls"] for record in records[2:11:4]] == [b"2", b"0", b"1"]
    assert "bin" in records[0] and "jpg" not in records[0] and len(records[0]) == 2
    assert records[0].get("jpg") is None
    assert "1.tar" in records.name(5) and records.name(5) in repr(records[5])


def test_lines_rows_and_folders(tmp_path: Path) -> None:
    lines = [{"text": f"größe {n}", "label": n} for n in range(4)]
    with gzip.open(tmp_path / "x.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    records = trireme.open_records(tmp_path / "x.jsonl.gz", unpack_folder=tmp_path)
    assert [record["text"].decode() for record in records] == [line["text"] for line in lines]
    assert [int(record["label"]) for record in records] == [0, 1, 2, 3]

    (tmp_path / "x.csv").write_text('text,label\n"a, b",1\nc,2\n')
    assert everything(trireme.open_records(str(tmp_path / "x.csv"))) == [
        {"text": b"a, b", "label": b"1"},
        {"text": b"c", "label": b"2"},
    ]
    (tmp_path / "rows.txt").write_text("a|1\nb|2\n")
    rows = trireme.open_records(
        tmp_path / "rows.txt", form="csv", columns=["text", "label"], separator="|"
    )
    assert everything(rows)[1] == {"text": b"b", "label": b"2"}

    for name in ("b/1.jpg", "a/2.jpg", "a/3.txt", "b/4.txt"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name).write_text(name)
    photos = trireme.open_records(tmp_path / "photos")
    assert everything(photos) == [
        {"jpg": b"a/2.jpg", "cls": b"0"},
        {"jpg": b"b/1.jpg", "cls": b"1"},
    ]
    texts = trireme.open_records(tmp_path / "photos", suffixes=[".txt"], classes=["b", "a"])
    assert everything(texts) == [
        {"txt": b"b/4.txt", "cls": b"0"},
        {"txt": b"a/3.txt", "cls": b"1"},
    ]


def masked_crc(content: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def part(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def tfrecord(features: dict[str, bytes | int]) -> bytes:
    """A tf.train.Example in its frame."""
    entries = b""
    for name, value in features.items():
        listed = (
            part(1, part(1, value))
            if isinstance(value, bytes)
            else part(3, b"\x08" + bytes([value]))
        )
        entries += part(1, part(1, name.encode()) + part(2, listed))
    example = part(1, entries)
    length = struct.pack("<Q", len(example))
    return length + masked_crc(length) + example + masked_crc(example)


def test_tfrecord_and_mds(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001"
    path.write_bytes(tfrecord({"x": b"abc", "label": 7}) + tfrecord({"x": b"", "label": 8}))
    records = trireme.open_records(path, form="tfrecord")
    assert [record["x"] for record in records] == [b"abc", b""]
    assert [struct.unpack("<q", record["label"])[0] for record in records] == [7, 8]

    samples = [b"first", b"the second"]
    bodies = [struct.pack("<I", len(sample)) + sample for sample in samples]
    begins = [12, 12 + len(bodies[0]), 12 + len(bodies[0]) + len(bodies[1])]
    head = struct.pack("<3I", *(begin + 4 for begin in begins))
    shard_bytes = struct.pack("<I", 2) + head + b"".join(bodies)
    folder = tmp_path / "mds"
    folder.mkdir()
    (folder / "shard.00000.mds").write_bytes(shard_bytes)
    about = {"basename": "shard.00000.mds", "bytes": len(shard_bytes), "hashes": {}}
    index = {
        "version": 2,
        "shards": [
            {
                "column_encodings": ["bytes"],
                "column_names": ["x"],
                "column_sizes": [None],
                "compression": None,
                "format": "mds",
                "hashes": [],
                "raw_data": about,
                "samples": 2,
                "size_limit": 1 << 20,
                "version": 2,
                "zip_data": None,
            }
        ],
    }
    (folder / "index.json").write_text(json.dumps(index))
    assert [record["x"] for record in trireme.open_records(folder)] == samples


def test_parquet_rows_are_records(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    images = [{"bytes": bytes([n]) * n, "path": f"{n}.jpg"} for n in range(10)]
    table = pyarrow.table({"image": images, "label": pyarrow.array(range(10), pyarrow.int64())})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=4)
    records = trireme.open_records(tmp_path / "x.parquet", cache_bytes=64)
    assert everything(records) == [
        {
            "image.bytes": image["bytes"],
            "image.path": str(image["path"]).encode(),
            "label": struct.pack("<q", n),
        }
        for n, image in enumerate(images)
    ]


def test_errors_are_those_of_the_package(shards: list[Path], tmp_path: Path) -> None:
    def kind_of(*words: Any, **options: Any) -> tuple[str, str]:
        with pytest.raises(trireme.Error) as caught:
            trireme.open_records(*words, **options)
        return caught.value.kind, caught.value.message

    (tmp_path / "x.avro").touch()
    kind, message = kind_of(tmp_path / "x.avro")
    assert kind == "invalid argument" and ".tfrecord" in message
    assert kind_of([])[0] == "invalid argument"
    assert kind_of(tmp_path / "nothing.tar")[0] == "input/output"
    kind, message = kind_of(shards, form="avro")
    assert kind == "invalid argument" and "'json_lines'" in message
    kind, message = kind_of(shards[0], form="csv", separator="||")
    assert kind == "invalid argument" and "one ASCII character" in message
    (tmp_path / "cut.tar").write_bytes(shards[1].read_bytes()[:3000])
    kind, message = kind_of([shards[0], tmp_path / "cut.tar"])
    assert kind == "corrupt data" and "cut.tar" in message

    records = trireme.open_records(shards)
    with pytest.raises(trireme.Error, match="'jpg'"):
        records.read(0, "jpg")
    with pytest.raises(KeyError, match="jpg"):
        records[0]["jpg"]
    for index in (12, -13):
        with pytest.raises(IndexError, match=f"no record {index} among 12"):
            records[index]
    with pytest.raises(TypeError):
        records["0"]
    with pytest.raises(TypeError):
        trireme.open_records([7])


def test_a_pickle_opens_the_files_anew(shards: list[Path]) -> None:
    records = trireme.open_records(shards)
    copy = pickle.loads(pickle.dumps(records))
    assert everything(copy) == everything(records)
    assert copy.identity == records.identity
    assert pickle.loads(pickle.dumps(records[7]))["cls"] == b"1"
    kept = pickle.dumps(records)
    write_tar(shards[1], shard(range(5, 13)))
    with pytest.raises(trireme.Error, match="are not those that were pickled") as caught:
        pickle.loads(kept)
    assert caught.value.kind == "corrupt data"


class Numbers(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    def __init__(self, paths: list[Path]) -> None:
        self.records = trireme.open_records(paths)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        record = self.records[index]
        return {"x": torch.tensor([float(record["bin"][0])]), "y": torch.tensor(int(record["cls"]))}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_loader_read_them(shards: list[Path], start: str) -> None:
    loader = torch.utils.data.DataLoader(
        Numbers(shards),
        batch_size=4,
        num_workers=1,
        multiprocessing_context=multiprocessing.get_context(start),
    )
    found = torch.cat([batch["x"].flatten() for batch in loader])
    assert found.tolist() == list(range(12))


def test_a_session_trains_on_them(shards: list[Path]) -> None:
    def loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"])

    torch.manual_seed(1)
    session = trireme.Session(
        torch.nn.Linear(1, 3),
        loss,
        Numbers(shards),
        serial=True,
        steps=3,
        batch_size=4,
        microbatch_size=4,
    )
    assert len([report.loss for report in session]) == 3


def test_threads_read_at_once(shards: list[Path]) -> None:
    records = trireme.open_records(shards)
    expected = [bytes([n]) * (1 + 400 * n) for n in range(12)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda i: records[i % 12]["bin"], range(600)))
    assert found == expected * 50


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of objects of a store on a thread of this very process."""
    monkeypatch.setattr(sys, "argv", ["store_server.py", str(tmp_path / "store")])
    spec = importlib.util.spec_from_file_location("store_server", STORE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.Server(("127.0.0.1", 0), module.Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("TRIREME_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "store" / "objects" / "bucket").mkdir(parents=True)
    yield tmp_path / "store" / "objects" / "bucket"
    server.shutdown()
    server.server_close()
    thread.join()


def test_s3_is_read_while_other_threads_run(shards: list[Path], store: Path) -> None:
    """The store's answers need the interpreter's lock, which opening must not hold."""
    for path in shards:
        (store / path.name).write_bytes(path.read_bytes())
    records = trireme.open_records(["s3://bucket/0.tar", "s3://bucket/1.tar"])
    assert everything(records) == everything(trireme.open_records(shards))
    assert len(trireme.open_records("s3://bucket/")) == 12
    with pytest.raises(trireme.Error, match="none.tar"):
        trireme.open_records("s3://bucket/none.tar")
