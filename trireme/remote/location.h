#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/base/remote_environment.h"

namespace trireme::remote {

/// Whether a path is the name of something elsewhere: it begins with `s3://`, `gs://`, `http://` or `https://`.
bool is_remote(const std::filesystem::path& path);

/// Whether it is one of a bucket: `s3://` or `gs://`.
bool is_in_store(const std::filesystem::path& path);

/// The name as messages have it: without user, password and query, which may be secrets.
std::filesystem::path shown(const std::filesystem::path& name);

/// What a request is signed with: AWS's Signature Version 4, which Google's stores take too.
struct Signer {
  StoreKeys keys;
  std::string region;
};

/// Where something lies, and who asks for it.
struct ObjectLocation {
  std::string url;
  std::optional<Signer> signer;  ///< None: the request is not signed.
  bool is_store = false;         ///< Named by bucket and key: no redirects; its ETag may be an MD5.
  bool is_google = false;
};

/// Of a name `s3://bucket/key`, `gs://bucket/key` or a URL. Keys are taken as they are, URLs as they are written.
///
/// Errors   kInvalidArgument where it has no bucket or host.
ObjectLocation location_of(const std::filesystem::path& name, const RemoteEnvironment& environment);

/// The bucket of a name of a store, and what stands behind it.
struct BucketKey {
  std::string bucket, key;
};

/// Errors   kInvalidArgument for a name of another form.
BucketKey bucket_key(const std::filesystem::path& name);

/// Letters, digits and `-._~` as they are, others as %XX; slashes too where they are kept.
std::string percent_encoded(std::string_view text, bool keeps_slashes);

}  // namespace trireme::remote
