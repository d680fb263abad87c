#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trireme/base/environment.h"

namespace trireme {

/// Who asks a store. Without an id requests are not signed, as for public data.
struct StoreKeys {
  std::string id, secret;
  std::string session_token;  ///< Of keys that are lent for a time.
};

/// What the environment says about files that lie elsewhere. Changes no results.
struct RemoteEnvironment {
  std::filesystem::path cache_folder;  ///< TRIREME_CACHE_DIR, or `trireme` in the user's cache.
  std::int64_t cache_bytes = std::int64_t{64} << 30;  ///< TRIREME_CACHE_SIZE: what it may take up.

  StoreKeys s3 = {};             ///< AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
  std::string s3_region = {};    ///< AWS_REGION or AWS_DEFAULT_REGION
  std::string s3_endpoint = {};  ///< AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL; empty: Amazon's.
  StoreKeys gs = {};             ///< GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY: HMAC keys.
  std::string gs_endpoint = {};  ///< STORAGE_EMULATOR_HOST; empty: Google's.
  std::filesystem::path authorities =
      {};  ///< AWS_CA_BUNDLE: certificates to trust; empty: the system's.
};

/// Read where a first name of another place is met, not before.
///
/// Errors   kInvalidArgument, naming the variable, where its value has no meaning, one of a pair of keys is missing, or nothing
///          says where a cache may be.
RemoteEnvironment read_remote_environment();
RemoteEnvironment read_remote_environment(const VariableLookup& lookup);

}  // namespace trireme
