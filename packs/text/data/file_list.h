#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "packs/text/data/report.h"

namespace trireme::text {

struct TextFile {
  std::filesystem::path path;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970.
  bool operator==(const TextFile&) const = default;
};

struct FileList {
  std::vector<TextFile> files;
  TextReport report;  ///< Files and those left out.
};

/// The files of `inputs`: files as they are, folders with all that is below them, names in order of
/// their bytes. Links are followed; each file and folder is taken once, where it is met first, so
/// that links in a circle end. What a folder holds is left out and counted where it is hidden,
/// unreadable, or has none of `suffixes`.
///
/// suffixes   ends of names, `.py` or `.d.ts`; none: all files.
/// Errors     kInvalidArgument where there is no input, an input does not exist or may not be
///            read, or no file is left; kIo for a folder that cannot be listed.
/// Blocking; a system call or two a file.
FileList list_files(std::span<const std::filesystem::path> inputs,
                    std::span<const std::string> suffixes = {});

}  // namespace trireme::text
