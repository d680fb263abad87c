#include "trireme/remote/location.h"

#include <algorithm>

#include "trireme/error.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kS3 = "s3://", kGs = "gs://", kHttp = "http://", kHttps = "https://";

[[noreturn]] void refuse_name(const fs::path& name, const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "'" + shown(name).string() + "' " + problem);
}

bool is_unreserved(char letter) {
  constexpr std::string_view kMarks = "-._~";
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || kMarks.find(letter) != std::string_view::npos;
}

std::string without_slash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

/// `https://host` of an endpoint that may be `host:9000` alone.
std::string endpoint_url(const std::string& endpoint) {
  return without_slash(is_remote(endpoint) ? endpoint : std::string(kHttp) + endpoint);
}

/// Where a bucket's keys begin, with a slash at the end. Amazon's has the bucket in the host's name, unless a dot in it would
/// not fit the host's certificate.
std::string s3_url(const std::string& bucket, const RemoteEnvironment& environment) {
  if (!environment.s3_endpoint.empty()) {
    return endpoint_url(environment.s3_endpoint) + "/" + bucket + "/";
  }
  const std::string& region = environment.s3_region;
  const std::string host =
      "s3." + region + (region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
  if (bucket.find('.') != std::string::npos) return std::string(kHttps) + host + "/" + bucket + "/";
  return std::string(kHttps) + bucket + "." + host + "/";
}

std::string gs_url(const std::string& bucket, const RemoteEnvironment& environment) {
  const std::string host = environment.gs_endpoint.empty() ? "https://storage.googleapis.com"
                                                           : endpoint_url(environment.gs_endpoint);
  return host + "/" + bucket + "/";
}

std::optional<Signer> signer_of(const StoreKeys& keys, const std::string& region) {
  if (keys.id.empty()) return std::nullopt;
  return Signer{.keys = keys, .region = region};
}

}  // namespace

bool is_remote(const fs::path& path) {
  const std::string& text = path.native();
  return is_in_store(path) || text.starts_with(kHttp) || text.starts_with(kHttps);
}

bool is_in_store(const fs::path& path) {
  return path.native().starts_with(kS3) || path.native().starts_with(kGs);
}

fs::path shown(const fs::path& name) {
  std::string text = name.native();
  if (!text.starts_with(kHttp) && !text.starts_with(kHttps)) return name;
  text.erase(std::min(text.find_first_of("?#"), text.size()));
  const std::size_t host = text.find("://") + 3;
  const std::size_t end = std::min(text.find('/', host), text.size());
  const std::size_t at = text.substr(0, end).rfind('@');
  if (at != std::string::npos && at > host) text.erase(host, at + 1 - host);
  return text;
}

std::string percent_encoded(std::string_view text, bool keeps_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char letter : text) {
    if (is_unreserved(letter) || (letter == '/' && keeps_slashes)) {
      encoded += letter;
      continue;
    }
    const auto byte = static_cast<unsigned char>(letter);
    encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

BucketKey bucket_key(const fs::path& name) {
  const std::string& text = name.native();
  if (!is_in_store(name)) {
    refuse_name(name, "is no name of a store; expected s3://bucket/key or gs://bucket/key");
  }
  const std::size_t begin = kS3.size();
  const std::size_t slash = std::min(text.find('/', begin), text.size());
  BucketKey found{.bucket = text.substr(begin, slash - begin),
                  .key = text.substr(std::min(slash + 1, text.size()))};
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  if (found.bucket.empty() || found.bucket.find_first_not_of(kLetters) != std::string::npos) {
    refuse_name(name, "has no bucket that can be; expected " + text.substr(0, begin) +
                          "bucket/key, the bucket of letters, digits, dots and hyphens");
  }
  return found;
}

ObjectLocation location_of(const fs::path& name, const RemoteEnvironment& environment) {
  const std::string& text = name.native();
  if (text.starts_with(kHttp) || text.starts_with(kHttps)) {
    const std::string host = shown(name).native().substr(text.find("://") + 3);
    if (host.empty() || host.starts_with('/')) refuse_name(name, "has no host");
    return {.url = text.substr(0, text.find('#'))};
  }
  const auto [bucket, key] = bucket_key(name);
  const bool is_google = text.starts_with(kGs);
  const std::string base = is_google ? gs_url(bucket, environment) : s3_url(bucket, environment);
  return {.url = base + percent_encoded(key, true),
          .signer = is_google ? signer_of(environment.gs, "auto")
                              : signer_of(environment.s3, environment.s3_region),
          .is_store = true,
          .is_google = is_google};
}

}  // namespace trireme::remote
