#include "trireme/remote/download.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;

constexpr int kPartial = 206;

/// Of `bytes 100-199/200`.
struct Range {
  std::int64_t begin = -1, total = -1;
};

Range range_of(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  Range range;
  const std::size_t slash = text.find('/');
  if (!text.starts_with(kUnit) || slash == std::string_view::npos) return range;
  const char* end = text.data() + text.size();
  std::from_chars(text.data() + kUnit.size(), end, range.begin);
  std::from_chars(text.data() + slash + 1, end, range.total);
  return range;
}

void write_at(const Descriptor& file, std::int64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file.number(), bytes.data(), bytes.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("write into the cache", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    at += count;
  }
}

}  // namespace

Download::Download(const fs::path& name, const ObjectLocation& location,
                   const ObjectVersion& version, const Descriptor& file)
    : name_(name), location_(location), version_(version), file_(file) {}

void Download::refuse(const std::string& problem) const {
  throw Error(ErrorKind::kIo, "'" + shown(name_).string() + "' " + problem);
}

HttpRequest Download::next_request() {
  if (!version_.is_strong()) at_ = 0;
  HttpRequest request{
      .location = location_,
      // As it lies there. Google unpacks what is kept as gzip for whom does not say that it takes it.
      .headers = {location_.is_google ? "Accept-Encoding: gzip" : "Accept-Encoding: identity"}};
  if (location_.is_store && !location_.is_google) {
    request.headers.emplace_back("x-amz-checksum-mode: ENABLED");
  }
  if (version_.is_strong()) request.headers.push_back("If-Match: " + version_.etag);
  if (at_ > 0) request.headers.push_back("Range: bytes=" + std::to_string(at_) + "-");
  return request;
}

void Download::check_version(const HttpResponse& head) const {
  const auto expect = [&](const std::string& is, const std::string& was, const std::string& what) {
    if (is.empty() || was.empty() || is == was) return;
    refuse("has changed while it was fetched: its " + what + " was " + was + " and is " + is +
           "; start again");
  };
  expect(head.header("etag"), version_.etag, "ETag");
  if (version_.etag.empty()) {
    expect(head.header("last-modified"), version_.last_modified, "time of modification");
  }
  const std::string length = head.status == kPartial
                                 ? std::to_string(range_of(head.header("content-range")).total)
                                 : head.header("content-length");
  expect(length, std::to_string(version_.bytes), "length");
}

void Download::begin(const HttpResponse& head) {
  check_version(head);
  const std::string encoding = head.header("content-encoding");
  const std::string ending = shown(name_).extension().string();
  const bool is_packed = ending == ".gz" || ending == ".zst" || ending == ".zstd";
  if (!encoding.empty() && encoding != "identity" && encoding != "aws-chunked" && !is_packed) {
    refuse("is kept compressed (Content-Encoding " + encoding +
           "); give its name the ending .gz or .zst, or upload it as it is");
  }
  if (head.status != kPartial) {
    at_ = 0;  // where a part was asked for, the server does not give any
    digest_ = announced_digest(head.headers, location_.is_store);
  } else if (range_of(head.header("content-range")).begin != at_) {
    refuse("is answered with another part than the one that was asked for");
  }
}

bool Download::take(std::span<const std::byte> bytes) {
  if (std::ssize(bytes) > version_.bytes - at_) {
    refuse("is longer than the " + std::to_string(version_.bytes) + " bytes it should have");
  }
  write_at(file_, at_, bytes);
  at_ += std::ssize(bytes);
  constexpr std::int64_t kStepBytes = std::int64_t{1} << 16;  // less is a drip
  if (at_ < most_ + kStepBytes) return false;
  most_ = at_;
  return true;
}

bool Download::is_sound() const {
  return !digest_ || digest_of(file_, version_.bytes, digest_->algorithm) == digest_->base64;
}

}  // namespace trireme::remote
