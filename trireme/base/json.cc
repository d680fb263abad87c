#include "trireme/base/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "trireme/error.h"

namespace trireme {
namespace {

constexpr std::size_t kColumns = 100;

[[noreturn]] void refuse(std::string_view origin, const std::string& problem) {
  throw Error(ErrorKind::kCorruptData,
              "'" + std::string(origin) + "' is not valid JSON: " + problem);
}

/// As Python's repr: fewest digits; an exponent below 1e-4 and from 1e16 on; else a point.
std::string real_text(double number) {
  if (!std::isfinite(number)) {
    throw Error(ErrorKind::kInvalidArgument, "JSON has no infinity and no NaN; write them as text");
  }
  std::array<char, 32> buffer{};
  const auto [end, status] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                           std::chars_format::scientific);
  const std::string text(buffer.data(), end);
  const std::size_t mark = text.find('e');
  const int exponent = std::stoi(text.substr(mark + 1));
  if (exponent < -4 || exponent >= 16) return text;
  std::string sign, digits;
  for (const char c : text.substr(0, mark)) {
    if (c == '-') sign = "-";
    if (c >= '0' && c <= '9') digits += c;
  }
  if (exponent < 0) return sign + "0." + std::string(-exponent - 1, '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string fraction = digits.substr(whole);
  return sign + digits.substr(0, whole) + "." + (fraction.empty() ? "0" : fraction);
}

/// Writes values on one line, and gives up once the text would be longer than allowed.
class LineWriter {
 public:
  LineWriter(std::string_view comma, std::string_view colon, std::size_t max_length)
      : comma_(comma), colon_(colon), max_length_(max_length) {}

  bool write(const Json& json) {
    if (json.is_object()) return write_object(json);
    if (json.is_array()) return write_array(json);
    return append(scalar(json));
  }

  const std::string& text() const { return text_; }

 private:
  static std::string scalar(const Json& json) {
    if (json.is_number_float()) return real_text(json.get<double>());
    if (json.is_number_unsigned()) return std::to_string(json.get<std::uint64_t>());
    if (json.is_number_integer()) return std::to_string(json.get<std::int64_t>());
    try {
      return json.dump();
    } catch (const Json::exception& error) {
      throw Error(ErrorKind::kInvalidArgument, "a text for JSON is not UTF-8", error);
    }
  }

  bool append(std::string_view text) {
    text_ += text;
    return text_.size() <= max_length_;
  }

  bool write_object(const Json& json) {
    std::string_view separator = "{";
    for (const auto& [key, value] : json.items()) {
      if (!append(separator) || !append(scalar(key)) || !append(colon_) || !write(value)) {
        return false;
      }
      separator = comma_;
    }
    return append(json.empty() ? "{}" : "}");
  }

  bool write_array(const Json& json) {
    std::string_view separator = "[";
    for (const Json& item : json) {
      if (!append(separator) || !write(item)) return false;
      separator = comma_;
    }
    return append(json.empty() ? "[]" : "]");
  }

  std::string_view comma_;
  std::string_view colon_;
  std::size_t max_length_;
  std::string text_;
};

/// Writes what fits into the rest of a line on that line, and breaks up what does not.
class PageWriter {
 public:
  /// used   columns of the line that are taken, `trailing` of them after the value.
  void write(const Json& json, std::size_t indent, std::size_t used) {
    LineWriter line(", ", ": ", used < kColumns ? kColumns - used : 0);
    if (line.write(json) || json.empty() || !json.is_structured()) {
      // A long scalar is cut short by the writer's limit only after it was written whole.
      text_ += line.text();
      return;
    }
    const std::string margin(indent + 2, ' ');
    text_ += json.is_object() ? '{' : '[';
    if (json.is_object()) {
      write_fields(json, margin);
    } else if (is_filled(json)) {
      fill(json, margin);
    } else {
      write_items(json, margin);
    }
    text_ += "\n" + std::string(indent, ' ') + (json.is_object() ? '}' : ']');
  }

  std::string take() { return std::move(text_); }

 private:
  static bool is_filled(const Json& json) {
    for (const Json& item : json) {
      if (!item.is_primitive() || item.is_string()) return false;
    }
    return true;
  }

  void write_fields(const Json& json, const std::string& margin) {
    const char* separator = "\n";
    for (const auto& [key, value] : json.items()) {
      const std::string start = margin + compact_text(key) + ": ";
      text_ += separator + start;
      write(value, margin.size(), start.size() + 1);
      separator = ",\n";
    }
  }

  void write_items(const Json& json, const std::string& margin) {
    const char* separator = "\n";
    for (const Json& item : json) {
      text_ += separator + margin;
      write(item, margin.size(), margin.size() + 1);
      separator = ",\n";
    }
  }

  void fill(const Json& json, const std::string& margin) {
    std::size_t column = kColumns;
    bool is_first = true;
    for (const Json& item : json) {
      const std::string text = compact_text(item);
      if (!is_first) text_ += ',';
      if (column + text.size() + 2 > kColumns) {
        text_ += "\n" + margin;
        column = margin.size();
      } else {
        text_ += ' ';
        ++column;
      }
      text_ += text;
      column += text.size() + 1;
      is_first = false;
    }
  }

  std::string text_;
};

/// Builds a value from the parser's events, with the limits that the library's own builder lacks.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view origin) : origin_(origin) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& token) override {
    if (token.find_first_of(".eE") == string_t::npos) {
      refuse(origin_, "the number " + token.substr(0, 40) + " is beyond 64 bits");
    }
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { refuse(origin_, "binary value"); }

  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (stack_.back()->contains(name)) {
      refuse(origin_, "the field \"" + name.substr(0, 80) + "\" appears twice in one object");
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    constexpr std::size_t kMostDetail = 200;  // it repeats what was read, of any length
    const std::string where = "at byte " + std::to_string(position) + ", ";
    if (error.id == kNumberOverflow) refuse(origin_, where + "a number is beyond 64 bits");
    const std::string text = error.what();
    const std::size_t begin = text.find(": ");
    std::string detail = begin == std::string::npos ? text : text.substr(begin + 2);
    if (detail.size() > kMostDetail) detail = detail.substr(0, kMostDetail) + " ..";
    refuse(origin_, where + detail);
  }

 private:
  template <typename T>
  bool add(T&& value) {
    place() = std::forward<T>(value);
    return true;
  }

  bool open(Json container) {
    if (stack_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      refuse(origin_, "nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    Json& where = place();
    where = std::move(container);
    stack_.push_back(&where);
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  /// Where the next value goes. Pointers on the stack stay valid: while a container is open, its
  /// parent gets no further element.
  Json& place() {
    if (stack_.empty()) return root_;
    Json& parent = *stack_.back();
    if (parent.is_object()) return parent[key_];
    parent.push_back(nullptr);
    return parent.back();
  }

  std::string origin_;
  Json root_;
  std::string key_;
  std::vector<Json*> stack_;
};

}  // namespace

std::string compact_text(const Json& json) {
  LineWriter line(",", ":", std::string::npos);
  line.write(json);
  return line.text();
}

std::string readable_text(const Json& json) {
  PageWriter page;
  page.write(json, 0, 0);
  return page.take() + "\n";
}

Json parse_json(std::string_view text, std::string_view origin) {
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    refuse(origin, "at byte " + std::to_string(nul) + " stands a NUL");  // to the parser, the end
  }
  Builder builder(origin);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace trireme
