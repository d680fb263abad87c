"""Which gradients share a bucket."""

import tensorflow as tf

from trireme.tensorflow.fusion import buckets_of


def test_buckets_are_filled_from_the_last_gradient_on() -> None:
    gradients = [tf.zeros([4]), tf.zeros([2]), tf.zeros([2])]  # 16, 8, 8 bytes
    assert buckets_of(gradients, 16) == [[2, 1], [0]]
    assert buckets_of(gradients, 32) == [[2, 1, 0]]


def test_a_gradient_larger_than_a_bucket_has_its_own() -> None:
    gradients = [tf.zeros([1]), tf.zeros([100]), tf.zeros([1])]
    assert buckets_of(gradients, 16) == [[2], [1], [0]]


def test_dtypes_have_buckets_of_their_own() -> None:
    gradients = [tf.zeros([1]), tf.zeros([1], tf.float16), tf.zeros([1])]
    assert buckets_of(gradients, 16) == [[2, 0], [1]]


def test_missing_and_sparse_gradients_are_in_none() -> None:
    rows = tf.IndexedSlices(tf.zeros([1, 2]), tf.constant([0]))
    assert buckets_of([None, rows, tf.zeros([1])], 16) == [[2]]
    assert buckets_of([], 16) == []
