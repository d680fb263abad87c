#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "trireme/base/descriptor.h"

namespace trireme::data {

/// How a file is compressed.
enum class Packing { kGzip, kZstd };

/// By the ending of its name, `.gz`, `.zst` or `.zstd` in any case; none for other names.
std::optional<Packing> packing_of(const std::filesystem::path& path);

/// `x.jsonl` of `x.jsonl.gz`: the name without the ending that `packing_of` goes by.
std::filesystem::path without_packing(const std::filesystem::path& path);

/// Unpacks a file, from where it is read next, and gives its bytes to `take`, in order, in pieces that are lent for the call. Several members or
/// frames, one behind the other, are one file.
///
/// path     its name, for messages.
/// Errors   kCorruptData, naming the file and the byte by which it was noticed, where it is cut off, does not match its
///          checksum or is no such file; kIo; kResourceExhausted without memory; those of `take`.
/// Cost     memory: 1 MiB and what the format asks for, up to 128 MiB of zstd.
void unpack(const Descriptor& file, const std::filesystem::path& path, Packing packing,
            const std::function<void(std::span<const std::byte>)>& take);

}  // namespace trireme::data
