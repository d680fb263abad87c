#include "trireme/base/json_field.h"

#include <cmath>

#include "trireme/error.h"

namespace trireme {
namespace {

/// The value as text, short enough for a message.
std::string excerpt(const Json& json) {
  constexpr std::size_t kMaxLength = 60;
  if (json.is_structured() && json.size() > 8) {
    return std::string(json.is_array() ? "a list" : "an object") + " of " +
           std::to_string(json.size());
  }
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxLength) text = text.substr(0, kMaxLength) + "...";
  return text;
}

}  // namespace

void JsonField::fail(const std::string& problem) const {
  throw Error(ErrorKind::kCorruptData, place_ + ": " + problem);
}

void JsonField::fail_expected(const std::string& what) const {
  fail("expected " + what + ", got " + excerpt(*json_));
}

bool JsonField::boolean() const {
  if (!json_->is_boolean()) fail_expected("true or false");
  return json_->get<bool>();
}

std::int64_t JsonField::integer(std::int64_t min, std::int64_t max) const {
  const bool is_huge = json_->is_number_unsigned() &&
                       json_->get<std::uint64_t>() >
                           static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t number =
      json_->is_number_integer() && !is_huge ? json_->get<std::int64_t>() : 0;
  if (!json_->is_number_integer() || is_huge || number < min || number > max) {
    const bool has_min = min != std::numeric_limits<std::int64_t>::min();
    const bool has_max = max != std::numeric_limits<std::int64_t>::max();
    std::string range;
    if (has_min && has_max) {
      range = " from " + std::to_string(min) + " to " + std::to_string(max);
    } else if (has_min) {
      range = " of at least " + std::to_string(min);
    }
    fail_expected("a whole number" + range);
  }
  return number;
}

int JsonField::index(int min, int max) const { return static_cast<int>(integer(min, max)); }

double JsonField::real() const {
  if (json_->is_number()) return json_->get<double>();
  if (json_->is_string()) {
    const std::string& text = json_->get_ref<const std::string&>();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  fail_expected("a number, \"inf\", \"-inf\" or \"nan\"");
}

const std::string& JsonField::text() const {
  if (!json_->is_string()) fail_expected("a text");
  return json_->get_ref<const std::string&>();
}

std::size_t JsonField::choice(std::span<const std::string_view> names) const {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (json_->is_string() && names[i] == json_->get_ref<const std::string&>()) return i;
    list += std::string(i == 0 ? "" : ", ") + std::string(names[i]);
  }
  fail_expected("one of " + list);
}

std::vector<JsonField> JsonField::items() const {
  if (!json_->is_array()) fail_expected("a list");
  std::vector<JsonField> items;
  items.reserve(json_->size());
  for (std::size_t i = 0; i < json_->size(); ++i) {
    items.emplace_back((*json_)[i], place_ + "[" + std::to_string(i) + "]");
  }
  return items;
}

JsonObject::JsonObject(JsonField field) : field_(std::move(field)) {
  if (!field_.json().is_object()) field_.fail_expected("an object");
}

JsonField JsonObject::required(std::string_view name) {
  std::optional<JsonField> field = optional(name);
  if (!field) field_.fail("the field \"" + std::string(name) + "\" is missing");
  return *field;
}

std::optional<JsonField> JsonObject::optional(std::string_view name) {
  asked_.emplace(name);
  const auto found = field_.json().find(name);
  if (found == field_.json().end()) return std::nullopt;
  return JsonField(*found, field_.place() + "." + std::string(name));
}

void JsonObject::finish() const {
  for (const auto& [name, value] : field_.json().items()) {
    if (!asked_.contains(name)) {
      field_.fail("unknown field \"" + name.substr(0, 80) +
                  "\"; this version knows none of that name");
    }
  }
}

Dtype dtype_from_json(const JsonField& field) {
  const std::optional<Dtype> dtype = parse_dtype(field.text());
  if (!dtype) field.fail_expected("the name of a dtype, as f32");
  return *dtype;
}

Json real_to_json(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

}  // namespace trireme
