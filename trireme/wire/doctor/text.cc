#include <algorithm>
#include <cstdio>

#include "trireme/wire/doctor/doctor.h"

namespace trireme::doctor {
namespace {

/// Of at most 1023 bytes.
template <typename... Values>
std::string line(const char* format, const Values&... values) {
  char text[1024];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// At least `width` characters.
std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kSlow:
      return "slow";
    case Verdict::kBroken:
      return "broken";
  }
  return "unknown";
}

std::string to_text(std::span<const Finding> findings) {
  std::string table;
  std::string advice;
  for (const Finding& finding : findings) {
    table += padded(finding.topic, 20) + "  " + padded(std::string(to_text(finding.verdict)), 6) +
             "  " + finding.found + "\n";
    if (!finding.advice.empty()) advice += "  " + finding.topic + ": " + finding.advice + "\n";
  }
  return advice.empty() ? table : table + "what to do\n" + advice;
}

std::string to_text(const std::vector<PeerPath>& paths) {
  std::string table =
      line("%6s  %-24s  %-15s  %13s  %8s\n", "rank", "host", "path", "round trip us", "GB/s");
  for (const PeerPath& path : paths) {
    table += line("%6d  %-24s  %-15s  %13.1f  %8.2f\n", path.rank, path.host.c_str(),
                  path.path.c_str(), path.round_trip.count(), path.gb_per_s);
  }
  return table;
}

}  // namespace trireme::doctor
