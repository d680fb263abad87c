#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/base/descriptor.h"
#include "trireme/remote/request.h"

namespace trireme::remote {

/// What a server says that the bytes of an object add up to.
struct Digest {
  enum class Algorithm : std::uint8_t { kCrc32c, kCrc32, kMd5, kSha1, kSha256 };
  Algorithm algorithm = Algorithm::kMd5;
  std::string base64;  ///< As headers have it; of CRCs the four bytes, the highest first.
};

/// The first that is cheap to check, of a whole object. Nothing where the server says none that we know: parts of an upload that
/// have one each, say, or an ETag that is encrypted.
///
/// is_store   its ETag is the MD5 of what was put there in one piece.
std::optional<Digest> announced_digest(const Headers& headers, bool is_store);

/// Of the first `bytes` of a file: what `Digest::base64` has to be.
///
/// Errors   kIo where it cannot be read or is shorter; kUnavailable where the cryptographic library refuses.
std::string digest_of(const Descriptor& file, std::int64_t bytes, Digest::Algorithm algorithm);

}  // namespace trireme::remote
