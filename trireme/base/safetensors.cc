#include "trireme/base/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/base/json_field.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // limit of the public readers
constexpr std::string_view kMetadataName = "__metadata__";

// Indexed by Dtype.
constexpr std::array<std::string_view, 12> kNames = {"F64", "F32", "F16", "BF16", "I64", "I32",
                                                     "I16", "I8",  "U8",  "BOOL", "C64", "C128"};
constexpr std::array<std::string_view, 11> kForeignNames = {
    "U16",     "U32",     "U64",         "F8_E4M3",     "F8_E5M2", "F8_E8M0",
    "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4"};

/// Bytes of a dense tensor; nothing where a dimension is negative or 63 bits are exceeded.
std::optional<std::uint64_t> dense_bytes(Dtype dtype, const std::vector<std::int64_t>& shape) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  // A zero anywhere makes the product zero, whatever the other dimensions are.
  std::uint64_t bytes = size_bytes(dtype);
  bool is_empty = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    is_empty = is_empty || dim == 0;
  }
  if (is_empty) return 0;
  for (const std::int64_t dim : shape) {
    if (bytes > kMax / static_cast<std::uint64_t>(dim)) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(dim);
  }
  return bytes;
}

void check_tensors(const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    const auto fail = [&tensor](const std::string& problem) {
      throw Error(ErrorKind::kInvalidArgument,
                  "safetensors: tensor '" + tensor.name + "': " + problem);
    };
    if (tensor.name == kMetadataName) fail("the name is reserved");
    if (i > 0 && tensors[i - 1].name == tensor.name) fail("appears twice");
    const auto bytes = dense_bytes(tensor.dtype, tensor.shape);
    if (!bytes) fail("its shape has a negative dimension or exceeds 63 bits");
    if (*bytes != tensor.bytes.size()) {
      fail("expected " + std::to_string(*bytes) + " bytes for its dtype and shape, got " +
           std::to_string(tensor.bytes.size()));
    }
  }
}

/// Takes the length off the front of the file; the rest starts with the header.
std::uint64_t header_bytes(std::span<const std::byte> bytes, const std::string& origin) {
  const auto fail = [&origin](const std::string& problem) {
    throw Error(ErrorKind::kCorruptData, "'" + origin + "' is not a safetensors file: " + problem);
  };
  if (bytes.size() < kLengthBytes) {
    fail("it has " + std::to_string(bytes.size()) +
         " bytes, fewer than the 8 of the header length");
  }
  std::array<std::byte, kLengthBytes> raw{};
  std::copy_n(bytes.begin(), kLengthBytes, raw.begin());
  const auto length = std::bit_cast<std::uint64_t>(raw);
  if (length > kMaxHeaderBytes) {
    fail("its header would have " + std::to_string(length) + " bytes, above the limit of 100 MB");
  }
  if (length > bytes.size() - kLengthBytes) {
    fail("its header would have " + std::to_string(length) + " bytes, but only " +
         std::to_string(bytes.size() - kLengthBytes) + " follow; it may be cut off");
  }
  return length;
}

Dtype read_dtype(const JsonField& field) {
  if (field.json().is_string()) {
    const std::string& name = field.text();
    if (std::find(kForeignNames.begin(), kForeignNames.end(), name) != kForeignNames.end()) {
      throw Error(ErrorKind::kUnavailable, field.place() + ": the type " + name +
                                               " of safetensors is not supported; convert it");
    }
  }
  return static_cast<Dtype>(field.choice(kNames));
}

struct Entry {
  Tensor tensor;
  std::uint64_t begin;
  std::uint64_t end;
};

Entry read_entry(const std::string& name, const JsonField& field, std::span<const std::byte> data) {
  JsonObject object(field);
  Entry entry{};
  entry.tensor.name = name;
  entry.tensor.dtype = read_dtype(object.required("dtype"));
  entry.tensor.shape =
      object.required("shape").list([](const JsonField& dim) { return dim.integer(0); });
  const JsonField offsets = object.required("data_offsets");
  const auto ends = offsets.list([](const JsonField& end) { return end.integer(0); });
  object.finish();
  if (ends.size() != 2) offsets.fail_expected("a begin and an end");
  entry.begin = static_cast<std::uint64_t>(ends[0]);
  entry.end = static_cast<std::uint64_t>(ends[1]);
  if (entry.begin > entry.end || entry.end > data.size()) {
    offsets.fail("expected a range within the " + std::to_string(data.size()) +
                 " bytes of data, got " + std::to_string(entry.begin) + " to " +
                 std::to_string(entry.end) + "; the file may be cut off");
  }
  const auto bytes = dense_bytes(entry.tensor.dtype, entry.tensor.shape);
  if (!bytes || *bytes != entry.end - entry.begin) {
    offsets.fail("expected " + (bytes ? std::to_string(*bytes) : "too many") +
                 " bytes for dtype and shape, got " + std::to_string(entry.end - entry.begin));
  }
  entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
  return entry;
}

/// Every byte of the data must belong to one tensor.
void check_cover(const std::vector<Entry>& entries, std::size_t data_bytes,
                 const std::string& origin) {
  std::uint64_t done = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != done) {
      throw Error(ErrorKind::kCorruptData,
                  "'" + origin + "': the data of tensor '" + entry.tensor.name.substr(0, 80) +
                      "' should begin at byte " + std::to_string(done) + ", but begins at " +
                      std::to_string(entry.begin) + " (" +
                      (entry.begin < done ? "an overlap" : "a hole") + ")");
    }
    done = entry.end;
  }
  if (done != data_bytes) {
    throw Error(ErrorKind::kCorruptData, "'" + origin + "': expected " + std::to_string(done) +
                                             " bytes of data, got " + std::to_string(data_bytes));
  }
}

Metadata read_metadata(const JsonField& field) {
  if (!field.json().is_object()) field.fail_expected("an object");
  Metadata metadata;
  for (const auto& [name, value] : field.json().items()) {
    metadata[name] = JsonField(value, field.place() + "." + name.substr(0, 80)).text();
  }
  return metadata;
}

/// Brings tensors into the order of their data, checked.
void put_in_order(std::vector<Tensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  check_tensors(tensors);
  std::stable_sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return size_bytes(a.dtype) > size_bytes(b.dtype);
  });
}

/// All of the file that stands before the data.
std::string head(const std::vector<Tensor>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadataName)] = metadata;
  std::size_t offset = 0;
  for (const Tensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", kNames[static_cast<std::size_t>(tensor.dtype)]},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = compact_text(header);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const auto length =
      std::bit_cast<std::array<char, kLengthBytes>>(static_cast<std::uint64_t>(text.size()));
  return std::string(length.data(), length.size()) + text;
}

}  // namespace

std::vector<std::byte> to_bytes(std::vector<Tensor> tensors, const Metadata& metadata) {
  put_in_order(tensors);
  const std::string before = head(tensors, metadata);
  std::vector<std::byte> file;
  const auto append = [&file](std::span<const std::byte> bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  append(std::as_bytes(std::span(before)));
  for (const Tensor& tensor : tensors) append(tensor.bytes);
  return file;
}

Written write(const std::filesystem::path& path, std::vector<Tensor> tensors,
              const Metadata& metadata) {
  put_in_order(tensors);
  const std::string before = head(tensors, metadata);
  FileWriter file(path);
  Sha256 hash;
  Written written;
  const auto append = [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    hash.add(bytes);
    written.bytes += bytes.size();
  };
  append(std::as_bytes(std::span(before)));
  for (const Tensor& tensor : tensors) append(tensor.bytes);
  file.finish();
  written.sha256 = hash.finish();
  return written;
}

Content parse(std::span<const std::byte> bytes, std::string_view origin) {
  const std::string name(origin);
  const std::uint64_t length = header_bytes(bytes, name);
  const std::span<const std::byte> header = bytes.subspan(kLengthBytes, length);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  const Json json = parse_json(text, name + " (header)");
  if (!json.is_object()) JsonField(json, name).fail_expected("an object as header");

  Content content;
  std::vector<Entry> entries;
  for (const auto& [key, value] : json.items()) {
    const JsonField field(value, name + ": tensor '" + key.substr(0, 80) + "'");
    if (key == kMetadataName) {
      content.metadata = read_metadata(field);
    } else {
      entries.push_back(read_entry(key, field, data));
    }
  }
  // Empty tensors share their place with the one that follows: they come first.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_cover(entries, data.size(), name);
  for (Entry& entry : entries) content.tensors.push_back(std::move(entry.tensor));
  return content;
}

}  // namespace trireme::safetensors
