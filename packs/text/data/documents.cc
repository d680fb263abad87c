#include "packs/text/data/documents.h"

#include <utf8.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/base/json_field.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr std::size_t kMaxLineBytes = std::size_t{256} << 20U;
constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";
constexpr std::string_view kWhiteSpace = " \n\t\r\f\v";

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::int64_t count_replacements(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t at = text.find(kReplacementBytes); at != std::string_view::npos;
       at = text.find(kReplacementBytes, at + kReplacementBytes.size())) {
    ++count;
  }
  return count;
}

/// Repairs `text` and counts that.
void repair_and_count(std::string& text, TextReport& report) {
  const std::int64_t replaced = repair_utf8(text);
  report.repaired += replaced > 0 ? 1 : 0;
  report.replaced += replaced;
}

/// Field `text` of a line; its other fields may be anything.
std::string text_of_line(const RawText& raw) {
  const std::string place = raw.path.string() + " line " + std::to_string(raw.line);
  const Json line = parse_json(raw.bytes, place);
  return JsonObject(JsonField(line, place)).required("text").text();
}

}  // namespace

TextReader::TextReader(std::vector<TextFile> files, std::int64_t max_document_bytes)
    : files_(std::move(files)), max_bytes_(static_cast<std::size_t>(max_document_bytes)) {
  if (max_document_bytes < 16) {
    throw Error(ErrorKind::kInvalidArgument,
                "a document may have 16 bytes or more, got " + std::to_string(max_document_bytes));
  }
}

std::optional<RawText> TextReader::next() {
  RawText raw;
  while (is_open_ || next_file_ < files_.size()) {
    if (!is_open_) open_next();
    if (line_ > 0 ? next_line(raw) : next_plain(raw)) return raw;
    is_open_ = false;
  }
  return std::nullopt;
}

void TextReader::open_next() {
  path_ = files_[next_file_++].path;
  file_ = std::ifstream(path_, std::ios::binary);
  if (!file_) {
    throw Error(ErrorKind::kIo,
                "cannot open '" + path_.string() + "': " + std::generic_category().message(errno));
  }
  buffer_.clear();
  begin_ = 0;
  num_parts_ = 0;
  line_ = path_.extension() == ".jsonl" ? 1 : 0;
  is_open_ = true;
}

/// Reads until `wanted` bytes are there or the file ends. Whether they are.
bool TextReader::fill(std::size_t wanted) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  while (buffer_.size() < wanted && file_) {
    const std::size_t before = buffer_.size();
    buffer_.resize(before + std::max(kBlockBytes, before));  // at least doubles: long lines
    file_.read(buffer_.data() + before, static_cast<std::streamsize>(buffer_.size() - before));
    const auto count = static_cast<std::size_t>(file_.gcount());
    buffer_.resize(before + count);
    report_.bytes += static_cast<std::int64_t>(count);
  }
  if (file_.bad()) throw Error(ErrorKind::kIo, "cannot read '" + path_.string() + "'");
  return buffer_.size() >= wanted;
}

bool TextReader::next_plain(RawText& raw) {
  if (buffer_.size() - begin_ <= max_bytes_) fill(max_bytes_ + 1);
  std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.empty()) {
    report_.empty += num_parts_ == 0 ? 1 : 0;
    return false;
  }
  const bool is_cut = rest.size() > max_bytes_;
  if (is_cut) rest = rest.substr(0, cut_position(rest, max_bytes_));
  if (rest.find('\0') != std::string_view::npos) {
    ++report_.binary;
    return false;
  }
  report_.cut += is_cut && num_parts_ == 0 ? 1 : 0;
  ++num_parts_;
  raw = {.bytes = std::string(rest), .path = path_};
  begin_ += rest.size();
  return true;
}

bool TextReader::next_line(RawText& raw) {
  std::size_t searched = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end == std::string::npos) {
      searched = buffer_.size() - begin_;
      if (searched > kMaxLineBytes) {
        throw Error(ErrorKind::kCorruptData, "'" + path_.string() + "' line " +
                                                 std::to_string(line_) +
                                                 " is longer than 256 MiB; is it JSON lines?");
      }
      if (fill(searched + 1)) continue;
      if (buffer_.empty()) return false;
    }
    const std::size_t length = std::min(end, buffer_.size()) - begin_;
    raw = {.bytes = buffer_.substr(begin_, length), .path = path_, .line = line_++};
    begin_ = std::min(begin_ + length + 1, buffer_.size());
    if (raw.bytes.find_first_not_of(kWhiteSpace) != std::string::npos) return true;
    searched = begin_;
  }
}

std::size_t cut_position(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  // Before the white space, so that words keep the blank that belongs to their tokens.
  const std::size_t blank = text.find_last_of(kWhiteSpace, limit);
  if (blank != std::string_view::npos && blank > limit / 2) return blank;
  std::size_t cut = limit;
  while (cut > limit - 3 && is_continuation(text[cut])) --cut;
  return cut;
}

std::int64_t repair_utf8(std::string& text) {
  if (utf8::is_valid(text.begin(), text.end())) return 0;
  std::string repaired;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(repaired), kReplacement);
  const std::int64_t count = count_replacements(repaired) - count_replacements(text);
  text = std::move(repaired);
  return count;
}

std::vector<std::string> documents_of(RawText raw, std::int64_t max_document_bytes,
                                      TextReport& report) {
  repair_and_count(raw.bytes, report);
  const bool is_line = raw.line > 0;
  std::string text = is_line ? text_of_line(raw) : std::move(raw.bytes);
  if (text.empty() || (is_line && text.find('\0') != std::string::npos)) {
    ++(text.empty() ? report.empty : report.binary);
    return {};
  }
  const auto limit = static_cast<std::size_t>(max_document_bytes);
  std::vector<std::string> documents;
  if (!is_line || text.size() <= limit) {
    documents.push_back(std::move(text));
  } else {
    ++report.cut;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t length = cut_position(rest, limit);
      documents.emplace_back(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }
  report.documents += static_cast<std::int64_t>(documents.size());
  return documents;
}

bool is_held_out(std::string_view document, double fraction) {
  const std::uint64_t hash = std::stoull(sha256(document).substr(0, 13), nullptr, 16);
  return static_cast<double>(hash) < fraction * static_cast<double>(std::uint64_t{1} << 52);
}

}  // namespace trireme::text
