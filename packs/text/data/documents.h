#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packs/text/data/file_list.h"
#include "packs/text/data/report.h"

namespace trireme::text {

/// Longest document in bytes unless told otherwise. Much longer ones leave the caches while they
/// are tokenized: 64 KiB took 6.2 MB/s, 8 MB 3.2 MB/s (SentencePiece 0.1.97, 2 cores of an EPYC).
inline constexpr std::int64_t kMaxDocumentBytes = 64 * 1024;

/// Bytes of a file that `documents_of` makes documents of.
struct RawText {
  std::string bytes;
  std::filesystem::path path;
  std::int64_t line = 0;  ///< Of a file of JSON lines, from 1; 0: plain text.
};

/// Reads files one after the other: `.jsonl` line by line, others as plain text, one document each
/// or, beyond `max_document_bytes`, several. Caller-synchronised.
///
/// Memory   one document. Of JSON lines up to three times the longest, which has at most 256 MiB;
///          with documents_of up to eight times: a line of 100 MB took 0.5 GB.
class TextReader {
 public:
  /// max_document_bytes   at least 16, else kInvalidArgument.
  TextReader(std::vector<TextFile> files, std::int64_t max_document_bytes);

  /// The next one; nothing at the end. A plain file with a NUL byte ends there; what came before
  /// it in the same document is left out too. Blank lines of JSON lines are left out.
  ///
  /// Errors   kIo, naming the file; kCorruptData for a line beyond 256 MiB.
  std::optional<RawText> next();

  /// Counts bytes, empty and binary files, files that were cut; complete at the end.
  const TextReport& report() const { return report_; }

 private:
  void open_next();
  bool fill(std::size_t wanted);
  bool next_plain(RawText& raw);
  bool next_line(RawText& raw);

  std::vector<TextFile> files_;
  std::size_t max_bytes_;
  std::size_t next_file_ = 0;
  std::ifstream file_;
  std::filesystem::path path_;
  std::string buffer_;  ///< Read and not given out yet, from `begin_` on.
  std::size_t begin_ = 0;
  std::int64_t line_ = 0;  ///< Line of `.jsonl`, from 1.
  std::int64_t num_parts_ = 0;
  bool is_open_ = false;
  TextReport report_;
};

/// Where to cut `text` so that the front has at most `limit` bytes: before the last white space
/// there, else between two characters. In [1, limit] where limit >= 4.
std::size_t cut_position(std::string_view text, std::size_t limit);

/// Puts U+FFFD in place of each run of bytes that is not UTF-8. Returns how many.
std::int64_t repair_utf8(std::string& text);

/// The documents in `raw`, UTF-8, none empty, with its counts in `report`: plain text is one; of a
/// JSON line the field `text`, cut where it is too long.
///
/// Errors   kCorruptData, naming file and line, for a line that is not a JSON object with a text
///          `text`.
std::vector<std::string> documents_of(RawText raw, std::int64_t max_document_bytes,
                                      TextReport& report);

/// Whether a document is held out for evaluation: decided by its content alone, so that neither
/// order nor other files matter.
///
/// fraction   part of the documents that are, in [0, 1].
bool is_held_out(std::string_view document, double fraction);

}  // namespace trireme::text
