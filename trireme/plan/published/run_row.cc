#include "trireme/plan/published/run_row.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <memory>

#include "trireme/base/files.h"
#include "trireme/error.h"
#include "trireme/plan/analytic/train_layout.h"

namespace trireme::published {
namespace {

struct TextColumn {
  std::string_view name;
  std::string RunRow::* field;
  bool is_needed = false;
};

constexpr std::array kTexts = {
    TextColumn{"source", &RunRow::source, true},     TextColumn{"model", &RunRow::model, true},
    TextColumn{"gpu_type", &RunRow::gpu_type, true}, TextColumn{"note", &RunRow::note},
    TextColumn{"recompute", &RunRow::recompute},     TextColumn{"precision", &RunRow::precision},
    TextColumn{"schedule", &RunRow::schedule},       TextColumn{"zero_fsdp", &RunRow::zero_fsdp},
    TextColumn{"flops_kind", &RunRow::flops_kind},   TextColumn{"attention", &RunRow::attention},
};

struct NumberColumn {
  std::string_view name;
  double RunRow::* field;
  bool is_needed = false;
  bool is_count = true;  ///< Whole, and at most 2^20.
};

constexpr std::array kNumbers = {
    NumberColumn{"gpus", &RunRow::gpus, true},
    NumberColumn{"tp", &RunRow::tp, true},
    NumberColumn{"pp", &RunRow::pp, true},
    NumberColumn{"dp", &RunRow::dp, true},
    NumberColumn{"microbatch", &RunRow::microbatch, true},
    NumberColumn{"global_batch", &RunRow::global_batch, true},
    NumberColumn{"seq_len", &RunRow::seq_len, true},
    NumberColumn{"step_time_s", &RunRow::step_time_s, true, false},
    NumberColumn{"cp", &RunRow::cp},
    NumberColumn{"vp", &RunRow::vp},
    NumberColumn{"layers", &RunRow::layers},
    NumberColumn{"hidden", &RunRow::hidden},
    NumberColumn{"heads", &RunRow::heads},
    NumberColumn{"kv_heads", &RunRow::kv_heads},
    NumberColumn{"ffn", &RunRow::ffn},
    NumberColumn{"vocab", &RunRow::vocab},
    NumberColumn{"tflops_per_gpu", &RunRow::tflops_per_gpu, false, false},
    NumberColumn{"tokens_per_s_per_gpu", &RunRow::tokens_per_s_per_gpu, false, false},
    NumberColumn{"samples_per_s", &RunRow::samples_per_s, false, false},
    NumberColumn{"mem_gb", &RunRow::mem_gb, false, false},
};

using Values = std::vector<std::string>;

struct Reader {
  std::vector<Values> rows;
  Values row;
};

void take_value(void* text, std::size_t bytes, void* self) {
  static_cast<Reader*>(self)->row.emplace_back(static_cast<const char*>(text), bytes);
}

void take_row(int /*letter*/, void* self) {
  auto& reader = *static_cast<Reader*>(self);
  reader.rows.push_back(std::move(reader.row));
  reader.row.clear();
}

std::vector<Values> split(std::string_view text, const std::string& origin) {
  csv_parser parser = {};
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
    throw Error(ErrorKind::kResourceExhausted, "no parser for CSV");
  }
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> owner(&parser, csv_free);
  Reader reader;
  const std::size_t taken =
      csv_parse(&parser, text.data(), text.size(), take_value, take_row, &reader);
  if (taken != text.size() || csv_fini(&parser, take_value, take_row, &reader) != 0) {
    throw Error(
        ErrorKind::kCorruptData,
        fmt::format("{}, row {}: quotes do not fit; a value with quotes or commas stands in "
                    "quotes, a quote in it twice",
                    origin, reader.rows.size() + 1));
  }
  return std::move(reader.rows);
}

/// Position of each column; -1 where it is not there.
int column_of(const Values& head, std::string_view name, bool is_needed,
              const std::string& origin) {
  const auto found = std::ranges::find(head, name);
  if (found != head.end()) return static_cast<int>(found - head.begin());
  if (!is_needed) return -1;
  throw Error(ErrorKind::kCorruptData,
              fmt::format("{}, row 1: there is no column '{}'; add it, with empty values where a "
                          "source does not say",
                          origin, name));
}

double number_of(const std::string& text, const std::string& where) {
  if (text.empty()) return 0;
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = code == std::errc() && end == text.data() + text.size();
  if (is_number && std::isfinite(value) && value >= 0) return value;
  throw Error(
      ErrorKind::kCorruptData,
      fmt::format("{}: '{}' is no number of 0 or more; leave it empty where the source does "
                  "not say",
                  where, text));
}

void check_count(double value, const std::string& where) {
  if (value == std::floor(value) && value <= analytic::kMostOfLayout) return;
  throw Error(ErrorKind::kCorruptData,
              fmt::format("{}: {} is no whole number of at most 2^20; correct it, or leave it "
                          "empty where the source does not say",
                          where, value));
}

/// Searches for words in a text take stack by its length.
void check_length(const std::string& value, const std::string& where) {
  constexpr std::size_t kMostBytes = 1024;
  if (value.size() <= kMostBytes) return;
  throw Error(ErrorKind::kCorruptData,
              fmt::format("{}: a value of {} bytes, '{}...'; shorten it to {}", where, value.size(),
                          value.substr(0, 40), kMostBytes));
}

}  // namespace

std::vector<RunRow> parse_runs(std::string_view text, const std::string& origin) {
  const std::vector<Values> rows = split(text, origin);
  if (rows.empty()) {
    throw Error(ErrorKind::kCorruptData, origin + ": it is empty; expected a head and rows");
  }
  const Values& head = rows.front();
  std::vector<int> texts, numbers;
  for (const TextColumn& one : kTexts) {
    texts.push_back(column_of(head, one.name, one.is_needed, origin));
  }
  for (const NumberColumn& one : kNumbers) {
    numbers.push_back(column_of(head, one.name, one.is_needed, origin));
  }
  std::vector<RunRow> result;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const Values& values = rows[r];
    const std::string where = fmt::format("{}, row {}", origin, r + 1);
    if (values.size() != head.size()) {
      throw Error(ErrorKind::kCorruptData, fmt::format("{}: {} values under a head of {} columns",
                                                       where, values.size(), head.size()));
    }
    for (const std::string& value : values) check_length(value, where);
    RunRow row;
    row.row = static_cast<int>(r + 1);
    for (std::size_t i = 0; i < kTexts.size(); ++i) {
      if (texts[i] >= 0) row.*kTexts[i].field = values[texts[i]];
    }
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      if (numbers[i] < 0) continue;
      const std::string place = fmt::format("{}, column {}", where, kNumbers[i].name);
      const double value = number_of(values[numbers[i]], place);
      if (kNumbers[i].is_count) check_count(value, place);
      row.*kNumbers[i].field = value;
    }
    if (row.gpus < 1) {
      throw Error(ErrorKind::kCorruptData,
                  where +
                      ", column gpus: a run has at least one device; correct it or leave the "
                      "row out");
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::vector<RunRow> read_runs(const std::filesystem::path& path) {
  return parse_runs(read_file(path), path.string());
}

}  // namespace trireme::published
