#include "tests/support/mutate_input.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "trireme/base/json.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::testing {
namespace {

constexpr std::array<std::string_view, 14> kTokens = {"-1",
                                                      "0",
                                                      "2147483648",
                                                      "1099511627777",
                                                      "9223372036854775807",
                                                      "18446744073709551616",
                                                      "1e999",
                                                      "\"",
                                                      ",",
                                                      "\n",
                                                      "[",
                                                      "}",
                                                      "nan",
                                                      "\xff"};

const std::vector<Json>& unusual_values() {
  static const std::vector<Json> kValues = {0,
                                            -1,
                                            1,
                                            64,
                                            std::numeric_limits<std::int32_t>::max(),
                                            std::int64_t{1} << 31,
                                            (std::int64_t{1} << 40) + 1,
                                            std::numeric_limits<std::int64_t>::max(),
                                            std::numeric_limits<std::int64_t>::min(),
                                            std::numeric_limits<std::uint64_t>::max(),
                                            0.0,
                                            -0.5,
                                            1e308,
                                            5e-324,
                                            "inf",
                                            "nan",
                                            "",
                                            nullptr,
                                            true,
                                            Json::array(),
                                            Json::object()};
  return kValues;
}

/// A value of a document and what holds it.
struct Place {
  Json* value = nullptr;
  Json* parent = nullptr;
  std::string key;        ///< In a parent that is an object.
  std::size_t index = 0;  ///< In one that is an array.
};

void add_places(Json& json, std::vector<Place>& places) {
  if (json.is_object()) {
    for (auto& [key, value] : json.items()) {
      places.push_back({&value, &json, key, 0});
      add_places(value, places);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      places.push_back({&json[i], &json, "", i});
      add_places(json[i], places);
    }
  }
}

void erase(const Place& place) {
  if (place.parent->is_object()) {
    place.parent->erase(place.key);
  } else {
    place.parent->erase(place.index);
  }
}

void repeat(const Place& place) {
  const Json copy = *place.value;
  if (place.parent->is_object()) {
    (*place.parent)[place.key + "2"] = copy;
  } else {
    place.parent->insert(place.parent->begin() + static_cast<std::ptrdiff_t>(place.index), copy);
  }
}

/// With the hash that its other fields have, where it had one.
std::string text_with_hash(Json json) {
  if (json.is_object() && json.erase("sha256") > 0) {
    try {
      json["sha256"] = sha256(compact_text(json));
    } catch (const Error&) {
      json["sha256"] = "broken UTF-8 has none";
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The digits around `position`.
std::pair<std::size_t, std::size_t> number_at(const std::string& text, std::size_t position) {
  const auto is_digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  std::size_t begin = position, end = position;
  while (begin > 0 && is_digit(begin - 1)) --begin;
  while (end < text.size() && is_digit(end)) ++end;
  return {begin, end};
}

constexpr std::size_t kLengthBytes = 8;

/// Bytes of the JSON that stands behind its length; 0 where there is none.
std::size_t header_bytes(const std::string& text) {
  std::uint64_t length = 0;
  if (text.size() <= kLengthBytes || text[kLengthBytes] != '{') return 0;
  std::memcpy(&length, text.data(), kLengthBytes);
  return length <= text.size() - kLengthBytes ? length : 0;
}

}  // namespace

std::string InputMutator::change_bytes(std::string text) {
  const std::size_t at = below(text.size() + 1);
  const std::size_t count = std::min<std::size_t>(1 + below(16), text.size() - at);
  const std::string token(kTokens[below(kTokens.size())]);
  switch (below(7)) {
    case 0:
      return text.erase(at, count);
    case 1:
      return text.insert(at, text.substr(below(text.size() + 1), 1 + below(64)));
    case 2:
      return text.insert(at, token);
    case 3: {
      const auto [begin, end] = number_at(text, at);
      return text.replace(begin, end - begin, token);
    }
    case 4:
      return text.substr(0, at);
    case 5: {
      constexpr std::array<std::uint64_t, 5> kSizes = {0, 1, 0x7fffffff, 0x10000000000, ~0ULL};
      const std::uint64_t number = kSizes[below(kSizes.size())];
      std::memcpy(text.data() + at, &number,
                  std::min<std::size_t>(sizeof number, text.size() - at));
      return text;
    }
    default:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      return text;
  }
}

std::string InputMutator::change_json(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  std::vector<Place> places;
  if (!json.is_discarded()) add_places(json, places);
  if (places.empty()) return change_bytes(text);
  const Place place = places[below(places.size())];
  const std::vector<Json>& unusual = unusual_values();
  switch (below(7)) {
    case 0:
      erase(place);
      break;
    case 1:
      repeat(place);
      break;
    case 2:
      *place.value = Json(*places[below(places.size())].value);
      break;
    case 3:
      *place.value = Json::array({*place.value});
      break;
    case 4:
      if (place.value->is_number_integer()) {
        *place.value = static_cast<std::int64_t>(place.value->get<std::uint64_t>() + below(3) - 1);
      } else if (place.value->is_string()) {
        *place.value = change_bytes(place.value->get<std::string>());
      } else {
        *place.value = unusual[below(unusual.size())];
      }
      break;
    default:
      *place.value = unusual[below(unusual.size())];
  }
  return text_with_hash(std::move(json));
}

std::string InputMutator::change_line(const std::string& text) {
  const std::size_t at = below(text.size() + 1);
  const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  return text.substr(0, begin) + change_json(text.substr(begin, end - begin)) + text.substr(end);
}

std::string InputMutator::change_header(const std::string& text, std::size_t header_bytes) {
  const std::string header = change_json(text.substr(kLengthBytes, header_bytes));
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + header +
         text.substr(kLengthBytes + header_bytes);
}

std::string InputMutator::change(const std::string& text) {
  if (below(8) == 0) return change_bytes(text);
  if (const std::size_t bytes = header_bytes(text)) return change_header(text, bytes);
  const std::size_t end = std::min(text.find('\0'), text.size());
  const std::string document = text.substr(0, end);
  return (Json::accept(document) ? change_json(document) : change_line(document)) +
         text.substr(end);
}

std::string InputMutator::mutate(std::string_view input, std::size_t max_bytes) {
  std::string text(input);
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) text = change(text);
  return text.substr(0, max_bytes);
}

}  // namespace trireme::testing
