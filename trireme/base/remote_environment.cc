#include "trireme/base/remote_environment.h"

#include <charconv>
#include <initializer_list>
#include <string_view>

#include "trireme/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_variable(const std::string& name, const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "environment variable " + name + ": " + problem);
}

/// Of the first variable that is set and not empty.
std::string first_of(const VariableLookup& lookup, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = lookup(name).value_or(""); !value.empty()) return value;
  }
  return {};
}

/// `200GiB`, or bytes.
std::int64_t parse_bytes(const std::string& name, std::string_view text) {
  constexpr std::string_view kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};
  constexpr std::int64_t kMost = std::int64_t{1} << 22;  // of a unit: no overflow
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  int shift = 0;
  for (const std::string_view known : kUnits) {
    const bool fits = known.empty() || number <= kMost;
    if (problem == std::errc() && number > 0 && unit == known && fits) return number << shift;
    shift += 10;
  }
  refuse_variable(
      name, "'" + std::string(text) + "' is no size; expected bytes, or as 500MiB, 200GiB, 4TiB");
}

fs::path cache_folder(const VariableLookup& lookup) {
  if (const std::string folder = first_of(lookup, {"TRIREME_CACHE_DIR"}); !folder.empty()) {
    return fs::absolute(folder);
  }
  // What is not absolute counts for nothing, says the XDG specification.
  const fs::path cache = first_of(lookup, {"XDG_CACHE_HOME"});
  if (cache.is_absolute()) return cache / "trireme";
  const fs::path home = first_of(lookup, {"HOME"});
  if (home.is_absolute()) return home / ".cache" / "trireme";
  refuse_variable("TRIREME_CACHE_DIR",
                  "expected a folder for files that are fetched, as HOME says none");
}

StoreKeys read_keys(const VariableLookup& lookup, const std::string& id,
                    const std::string& secret) {
  StoreKeys keys{.id = first_of(lookup, {id.c_str()}),
                 .secret = first_of(lookup, {secret.c_str()})};
  if (keys.id.empty() == keys.secret.empty()) return keys;
  refuse_variable(keys.id.empty() ? id : secret, "is missing, beside the other one of the pair");
}

}  // namespace

RemoteEnvironment read_remote_environment() { return read_remote_environment(process_variable); }

RemoteEnvironment read_remote_environment(const VariableLookup& lookup) {
  RemoteEnvironment environment{
      .cache_folder = cache_folder(lookup),
      .s3 = read_keys(lookup, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
      .s3_region = first_of(lookup, {"AWS_REGION", "AWS_DEFAULT_REGION"}),
      .s3_endpoint = first_of(lookup, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}),
      .gs = read_keys(lookup, "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY"),
      .gs_endpoint = first_of(lookup, {"STORAGE_EMULATOR_HOST"}),
      .authorities = first_of(lookup, {"AWS_CA_BUNDLE"})};
  environment.s3.session_token = first_of(lookup, {"AWS_SESSION_TOKEN"});
  if (environment.s3_region.empty()) environment.s3_region = "us-east-1";
  if (const std::string size = first_of(lookup, {"TRIREME_CACHE_SIZE"}); !size.empty()) {
    environment.cache_bytes = parse_bytes("TRIREME_CACHE_SIZE", size);
  }
  return environment;
}

}  // namespace trireme
