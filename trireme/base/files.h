#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

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
/// The folder must exist; an older file is replaced. A link is replaced, not followed.
/// Errors   kIo or, for a full disk, kResourceExhausted, naming the path; the temporary file is
///          removed.
/// Blocking until the data is on the device.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content);

/// Renames a file or folder and syncs the folders it left and entered: after a power cut it has one
/// of both names. Replaces a file or an empty folder. Both names are on one file system.
///
/// Errors   kIo with the system's reason. Blocking.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Throws what writing `path` would throw for its folder or name, without touching it: kIo where
/// the folder is missing or may not be written to, or `path` is a folder. Says nothing about space.
void check_writable(const std::filesystem::path& path);

}  // namespace trireme
