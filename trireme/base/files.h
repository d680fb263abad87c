#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/descriptor.h"

namespace trireme {

/// Whether something has this name; false also where that cannot be found out.
bool is_there(const std::filesystem::path& path);

/// The whole content of a file.
///
/// Errors   kInvalidArgument where `path` is a folder; kIo, with the system's reason, where it is
///          missing, unreadable or gets shorter while it is read.
/// Blocking; memory as large as the file.
std::string read_file(const std::filesystem::path& path);
std::vector<std::byte> read_file_bytes(const std::filesystem::path& path);

/// Makes `path` hold `content`, or leaves it as it was: nobody ever sees a part of it, also after
/// a power cut. Writes `path` + `.tmp-<process id>-<n>`, syncs it, renames it, syncs the folder.
///
/// The folder must exist; an older file is replaced. Of a link the file that it names is written.
/// Errors   kInvalidArgument where there is something else than a file: a device, a pipe, a folder;
///          kIo or, for a full disk, kResourceExhausted, naming the path; the temporary file is
///          removed.
/// Blocking until the data is on the device.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content);

/// A file that is written in pieces and seen while it grows: for folders that are published whole.
/// Caller-synchronised; blocking.
///
/// Errors   of every call: kIo or, for a full disk, kResourceExhausted, naming the path.
class FileWriter {
 public:
  /// Makes the file; an older one is replaced.
  explicit FileWriter(std::filesystem::path path);

  void write(std::span<const std::byte> bytes);

  /// Waits until the data is on the device. Call it last; a file without it may be cut off.
  void finish();

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// Makes `path` hold what `write` writes into the temporary file that it gets, as
/// `write_file_atomically` does for content that is at hand. `write` syncs the file: FileWriter
/// does.
///
/// Errors   those of `write_file_atomically` and of `write`.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(const std::filesystem::path&)>& write);

/// Waits until the names in `folder` are on the device: new, renamed and removed files. kIo.
void sync_folder(const std::filesystem::path& folder);

/// Makes a folder and those above it that are missing, and syncs what holds them. kIo or, for a
/// full disk, kResourceExhausted.
void make_folder(const std::filesystem::path& path);

/// Renames a file or folder and syncs the folders it left and entered: after a power cut it has one
/// of both names. Replaces a file or an empty folder. Both names are on one file system.
///
/// Errors   kIo with the system's reason. Blocking.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Throws what writing `path` would throw for its folder or name, without touching it:
/// kInvalidArgument where something else than a file is there, kIo where the folder is missing or
/// may not be written to. Says nothing about space.
void check_writable(const std::filesystem::path& path);

}  // namespace trireme
