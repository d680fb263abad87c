#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// The features of a serialized `tf.train.Example`, by name. Of the encoding of Protocol Buffers no more is read than this
/// message needs:
///
///     Example  { Features features = 1; }
///     Features { map<string, Feature> feature = 1; }     each entry { string key = 1; Feature value = 2; }
///     Feature  { BytesList = 1 | FloatList = 2 | Int64List = 3 }     each { repeated value = 1; }
///
/// Source   protobuf.dev, "Encoding"; tensorflow/core/example/{example,feature}.proto.
class TfExample {
 public:
  /// message   lent for as long as this lives.
  /// Errors    kCorruptData where it is no such message.
  explicit TfExample(std::span<const std::byte> message);

  /// In the order of the message; of features with one name the last counts.
  std::vector<std::string> names() const;

  /// The value of a bytes list; the numbers of an int64 or float list one after the other, as i64 or f32, little-endian.
  ///
  /// Errors   kInvalidArgument where there is no such feature; kCorruptData where it is damaged, has no values, or where a
  ///          bytes list has other than one: where one ends and the next begins would be lost.
  std::vector<std::byte> read(std::string_view name) const;

  /// `bytes`, `floats` or `integers`: what `read` gives; nothing where there is no such feature, or it is empty.
  std::string_view kind_of(std::string_view name) const;

 private:
  struct Feature {
    std::string_view name;
    std::span<const std::byte> message;
  };
  std::vector<Feature> features_;
};

}  // namespace trireme::data
