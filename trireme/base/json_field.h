#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/base/json.h"
#include "trireme/dtype.h"

namespace trireme {

/// A value inside a document together with its place, `graph.nodes[3].id`.
///
/// Every reader below throws kCorruptData that names the place, what was expected and what is
/// there. The document must outlive the field. Immutable.
class JsonField {
 public:
  JsonField(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  const Json& json() const { return *json_; }
  const std::string& place() const { return place_; }

  bool boolean() const;

  /// A whole number in [min, max]; 5.0 is not one.
  std::int64_t integer(std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;

  /// `integer` in the range of an int.
  int index(int min, int max = std::numeric_limits<int>::max()) const;

  /// Any number, or one of the texts `inf`, `-inf`, `nan` that `real_to_json` writes.
  double real() const;

  const std::string& text() const;

  /// A text that is one of `names`: its position there.
  std::size_t choice(std::span<const std::string_view> names) const;

  /// The elements of an array.
  std::vector<JsonField> items() const;

  /// `read(element)` of each element of an array.
  template <typename Read>
  auto list(Read read) const {
    std::vector<std::decay_t<decltype(read(std::declval<const JsonField&>()))>> result;
    for (const JsonField& item : items()) result.push_back(read(item));
    return result;
  }

  /// Throws kCorruptData: place, then `problem`.
  [[noreturn]] void fail(const std::string& problem) const;

  /// As above: `expected <what>, got <the value, shortened>`.
  [[noreturn]] void fail_expected(const std::string& what) const;

 private:
  const Json* json_;
  std::string place_;
};

/// Reads the fields of an object by name; `finish` refuses the ones that nobody asked for, so that
/// a misspelt optional field is an error.
class JsonObject {
 public:
  /// kCorruptData where `field` is no object.
  explicit JsonObject(JsonField field);

  const JsonField& field() const { return field_; }

  /// kCorruptData where it is missing.
  JsonField required(std::string_view name);

  /// Nothing where it is missing.
  std::optional<JsonField> optional(std::string_view name);

  void finish() const;

 private:
  JsonField field_;
  std::set<std::string, std::less<>> asked_;
};

/// A dtype by name, `f32`.
Dtype dtype_from_json(const JsonField& field);

/// A number, or the text `inf`, `-inf` or `nan`. Inverse of `JsonField::real`.
Json real_to_json(double number);

}  // namespace trireme
