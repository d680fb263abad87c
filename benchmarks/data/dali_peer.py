"""DALI's side of images_bench.py: `dali_peer.py FOLDER SIZE BATCH`, then lines `THREADS COUNT`, answered by seconds.

Crops are decoded alone, resized with antialiasing, flipped and normalised, by its operators for processors.
"""

import sys
import time

from nvidia.dali import fn, pipeline_def, types

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pipeline_def
def training(folder: str, size: int) -> tuple[object, object]:
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="files")
    crops = fn.decoders.image_random_crop(
        files, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
    )
    resized = fn.resize(crops, size=[size, size], antialias=True, interp_type=types.INTERP_LINEAR)
    normalised = fn.crop_mirror_normalize(
        resized,
        mirror=fn.random.coin_flip(),
        mean=[255 * value for value in MEAN],
        std=[255 * value for value in DEVIATION],
        dtype=types.FLOAT,
        output_layout="CHW",
    )
    return normalised, labels


def main(folder: str, size: int, batch: int) -> None:
    pipelines = {}
    print("ready", flush=True)
    for line in sys.stdin:
        threads, count = map(int, line.split())
        if threads not in pipelines:
            pipelines[threads] = training(
                folder=folder,
                size=size,
                batch_size=batch,
                num_threads=threads,
                device_id=None,
                prefetch_queue_depth=1,
            )
            pipelines[threads].build()
        begin, done = time.perf_counter(), 0
        while done < count:
            images, _ = pipelines[threads].run()
            assert images.shape()[0] == (3, size, size)
            done += len(images)
        print((time.perf_counter() - begin) * count / done, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
