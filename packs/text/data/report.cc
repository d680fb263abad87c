#include "packs/text/data/report.h"

#include <array>

namespace trireme::text {
namespace {

struct Count {
  std::string_view name;
  std::int64_t TextReport::* member;
  std::string_view text;
};

constexpr std::array<Count, 11> kCounts = {{
    {"files", &TextReport::files, "files"},
    {"hidden", &TextReport::hidden, "hidden"},
    {"filtered", &TextReport::filtered, "with other suffixes"},
    {"unreadable", &TextReport::unreadable, "unreadable"},
    {"bytes", &TextReport::bytes, "bytes"},
    {"documents", &TextReport::documents, "documents"},
    {"empty", &TextReport::empty, "empty"},
    {"binary", &TextReport::binary, "binary"},
    {"repaired", &TextReport::repaired, "not UTF-8"},
    {"replaced", &TextReport::replaced, "replaced characters"},
    {"cut", &TextReport::cut, "cut"},
}};

}  // namespace

TextReport& TextReport::operator+=(const TextReport& other) {
  for (const Count& count : kCounts) this->*count.member += other.*count.member;
  return *this;
}

std::string to_text(const TextReport& report) {
  std::string text;
  for (const Count& count : kCounts) {
    if (report.*count.member == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(report.*count.member) + " ";
    text += count.text;
  }
  return text.empty() ? "nothing" : text;
}

Json to_json(const TextReport& report) {
  Json json = Json::object();
  for (const Count& count : kCounts) json[std::string(count.name)] = report.*count.member;
  return json;
}

TextReport report_from_json(const JsonField& field) {
  JsonObject object(field);
  TextReport report;
  for (const Count& count : kCounts) {
    report.*count.member = object.required(count.name).integer(0);
  }
  object.finish();
  return report;
}

}  // namespace trireme::text
