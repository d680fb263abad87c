#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trireme::volume {

bool is_gzip(std::span<const std::byte> file);

/// The first `size` bytes that a gzip file unpacks to.
///
/// `size` counts: it is compared with what the file could unpack to at most before memory is taken.
/// Errors   kCorruptData, naming `name`, where the file holds fewer, or is damaged before or at
///          their end; where they end a member, also by its checksum.
std::vector<std::byte> unpack_gzip(std::span<const std::byte> file, std::int64_t size,
                                   const std::string& name);

}  // namespace trireme::volume
