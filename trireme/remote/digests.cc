#include "trireme/remote/digests.h"

#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/base/check.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::remote {
namespace {

using Algorithm = Digest::Algorithm;
using Take = std::function<void(std::span<const unsigned char>)>;

std::string base64(std::span<const unsigned char> bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // with the zero that OpenSSL writes
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string base64_of_crc(std::uint32_t crc) {
  const std::array<unsigned char, 4> bytes = {
      static_cast<unsigned char>(crc >> 24), static_cast<unsigned char>(crc >> 16),
      static_cast<unsigned char>(crc >> 8), static_cast<unsigned char>(crc)};
  return base64(bytes);
}

/// The value of `name=` in `crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==`.
std::string part_of(const std::string& list, const std::string& name) {
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    std::string_view part = std::string_view(list).substr(begin, end - begin);
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (part.starts_with(name + "=")) return std::string(part.substr(name.size() + 1));
    begin = end + 1;
  }
  return {};
}

/// Empty where there is no such header.
std::string value_of(const Headers& headers, std::string_view name) {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

/// The MD5 in an ETag `"0cc1.."`; empty where it is something else: of parts, `"..-3"`, or of what is encrypted.
std::string md5_in_etag(const Headers& headers) {
  const std::string tag = value_of(headers, "etag");
  const bool is_encrypted = value_of(headers, "x-amz-server-side-encryption").starts_with("aws:") ||
                            headers.contains("x-amz-server-side-encryption-customer-algorithm");
  std::array<unsigned char, 16> bytes{};
  if (is_encrypted || tag.size() != 2 * bytes.size() + 2) return {};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* digits = tag.data() + 1 + 2 * i;
    const auto [end, problem] = std::from_chars(digits, digits + 2, bytes[i], 16);
    if (problem != std::errc() || end != digits + 2) return {};
  }
  return base64(bytes);
}

void read_pieces(const Descriptor& file, std::int64_t bytes, const Take& take) {
  std::vector<unsigned char> buffer(std::size_t{1} << 18);
  for (std::int64_t begin = 0; begin < bytes;) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(buffer), bytes - begin));
    const ssize_t got = ::pread(file.number(), buffer.data(), wanted, begin);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("read what was fetched", errno);
    if (got == 0) throw Error(ErrorKind::kIo, "what was fetched is cut off in the cache");
    take(std::span(buffer).first(static_cast<std::size_t>(got)));
    begin += got;
  }
}

std::string hash_of(const Descriptor& file, std::int64_t bytes, const EVP_MD* algorithm) {
  const auto check = [](int result) {
    if (result != 1)
      throw Error(ErrorKind::kUnavailable, "OpenSSL refuses to hash what was fetched");
  };
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  check(EVP_DigestInit_ex(state.get(), algorithm, nullptr));
  read_pieces(file, bytes, [&](std::span<const unsigned char> piece) {
    check(EVP_DigestUpdate(state.get(), piece.data(), piece.size()));
  });
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  check(EVP_DigestFinal_ex(state.get(), digest.data(), &size));
  return base64(std::span(digest).first(size));
}

}  // namespace

std::optional<Digest> announced_digest(const Headers& headers, bool is_store) {
  const bool is_composite = value_of(headers, "x-amz-checksum-type") == "COMPOSITE";
  const auto of_amazon = [&](const std::string& name) {
    const std::string text = value_of(headers, "x-amz-checksum-" + name);
    const bool is_whole = !is_composite && text.find('-') == std::string::npos;
    return is_whole ? text : std::string();
  };
  const std::string google = value_of(headers, "x-goog-hash");
  const Digest candidates[] = {{Algorithm::kCrc32c, of_amazon("crc32c")},
                               {Algorithm::kCrc32c, part_of(google, "crc32c")},
                               {Algorithm::kCrc32, of_amazon("crc32")},
                               {Algorithm::kSha256, of_amazon("sha256")},
                               {Algorithm::kSha1, of_amazon("sha1")},
                               {Algorithm::kMd5, part_of(google, "md5")},
                               {Algorithm::kMd5, value_of(headers, "content-md5")},
                               {Algorithm::kMd5, is_store ? md5_in_etag(headers) : ""}};
  const auto* found = std::ranges::find_if(
      candidates, [](const Digest& candidate) { return !candidate.base64.empty(); });
  if (found == std::end(candidates)) return std::nullopt;
  return *found;
}

std::string digest_of(const Descriptor& file, std::int64_t bytes, Algorithm algorithm) {
  std::uint32_t crc = 0;
  switch (algorithm) {
    case Algorithm::kMd5:
      return hash_of(file, bytes, EVP_md5());
    case Algorithm::kSha1:
      return hash_of(file, bytes, EVP_sha1());
    case Algorithm::kSha256:
      return hash_of(file, bytes, EVP_sha256());
    case Algorithm::kCrc32:
      read_pieces(file, bytes, [&](std::span<const unsigned char> piece) {
        crc = static_cast<std::uint32_t>(::crc32_z(crc, piece.data(), piece.size()));
      });
      return base64_of_crc(crc);
    case Algorithm::kCrc32c:
      crc = ~0U;
      read_pieces(file, bytes, [&](std::span<const unsigned char> piece) {
        crc = crc32_iscsi(const_cast<unsigned char*>(piece.data()), static_cast<int>(piece.size()),
                          crc);
      });
      return base64_of_crc(~crc);
  }
  TRIREME_CHECK(false, "an algorithm of no name");
}

}  // namespace trireme::remote
