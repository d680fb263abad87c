#include "python/tensorflow_operators/collectives.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <sstream>

namespace trireme::tensorflow {
namespace {

constexpr std::size_t kDescriptionBytes = 16384;
constexpr std::size_t kMaxDims = 8;
constexpr std::int64_t kDescriptionDeadlineMs = 5000;

// An all_gather's tensor, as its rank tells the others.
struct Shape {
  std::int64_t type = 0;
  std::int64_t num_dims = 0;
  std::array<std::int64_t, kMaxDims> dims{};
};

TriremeDtype dtype_of(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return kTriremeF32;
    case DataType::kDouble:
      return kTriremeF64;
    case DataType::kInt32:
      return kTriremeI32;
    case DataType::kInt64:
      return kTriremeI64;
    case DataType::kBfloat16:
      return kTriremeBf16;
    case DataType::kHalf:
      return kTriremeF16;
    case DataType::kUint8:
      return kTriremeU8;
    case DataType::kBool:
      return kTriremeBool;
  }
  throw Failure(Code::kInvalidArgument, "a tensor of a dtype that Trireme does not move");
}

const char* name_of(DataType type) {
  constexpr std::array<const char*, 10> kNames = {"f64", "f32", "f16", "bf16", "i64",
                                                  "i32", "?",   "?",   "u8",   "bool"};
  return kNames.at(static_cast<std::size_t>(dtype_of(type)));
}

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::kDouble:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat:
    case DataType::kInt32:
      return 4;
    case DataType::kBfloat16:
    case DataType::kHalf:
      return 2;
    default:
      return 1;
  }
}

Code code_of(TriremeStatus status) {
  switch (status) {
    case kTriremeInvalidArgument:
      return Code::kInvalidArgument;
    case kTriremeTimeout:
      return Code::kDeadlineExceeded;
    case kTriremeCorruptData:
      return Code::kDataLoss;
    case kTriremeResourceExhausted:
      return Code::kResourceExhausted;
    // TensorFlow takes kUnavailable and kCancelled for its own, and hides them behind other errors.
    case kTriremePeerLost:
    case kTriremeCancelled:
      return Code::kAborted;
    default:
      return Code::kInternal;
  }
}

std::string text_of(DataType type, std::span<const std::int64_t> dims) {
  std::ostringstream text;
  text << name_of(type) << " [";
  for (std::size_t i = 0; i < dims.size(); ++i) text << (i == 0 ? "" : ", ") << dims[i];
  text << ']';
  return text.str();
}

std::size_t total_bytes(const Request& request) {
  return std::accumulate(request.pieces.begin(), request.pieces.end(), std::size_t{0},
                         [](std::size_t sum, const Piece& piece) { return sum + piece.bytes; });
}

// FNV-1a over what must be alike: not the label.
std::uint64_t hash_of(const Request& request) {
  std::uint64_t hash = 14695981039346656037U;
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 1099511628211U; };
  mix(static_cast<std::uint64_t>(request.code));
  for (const Piece& piece : request.pieces) {
    mix(static_cast<std::uint64_t>(piece.type));
    mix(piece.dims.size());
    for (const std::int64_t dim : piece.dims) mix(static_cast<std::uint64_t>(dim));
  }
  return hash;
}

// A line for the operation and one for each tensor: what must be alike, a tab, the label.
std::string description_of(const Request& request) {
  std::ostringstream text;
  text << request.operation << " of " << request.pieces.size() << " tensors\t" << request.label;
  for (const Piece& piece : request.pieces) text << '\n' << text_of(piece.type, piece.dims);
  std::string whole = text.str();
  whole.resize(std::min(whole.size(), kDescriptionBytes - 1));
  return whole;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What differs first between two descriptions; empty where nothing does.
std::string difference_between(const std::string& ours, const std::string& theirs, int rank) {
  const std::vector<std::string> a = lines_of(ours);
  const std::vector<std::string> b = lines_of(theirs);
  const auto untold = [](const std::string& line) { return line.substr(0, line.find('\t')); };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string x = i < a.size() ? untold(a[i]) : "nothing";
    const std::string y = i < b.size() ? untold(b[i]) : "nothing";
    if (x == y) continue;
    const std::string place = i == 0 ? "" : " as tensor " + std::to_string(i - 1);
    return "rank 0 has " + x + place + ", rank " + std::to_string(rank) + " has " + y;
  }
  return "";
}

}  // namespace

std::int64_t row_bytes(const Piece& piece) {
  return std::accumulate(piece.dims.begin() + 1, piece.dims.end(),
                         static_cast<std::int64_t>(size_of(piece.type)), std::multiplies<>());
}

Collectives::Collectives(const Groups& groups) : groups_(groups) {
  const Request start{.operation = "init", .label = "", .code = 0, .pieces = {}};
  check(trireme_group_size(groups_.operations, &num_ranks_), start);
  void* memory = nullptr;
  check(trireme_allocate(groups_.operations, groups_.scratch_bytes, &memory), start);
  scratch_ = static_cast<std::byte*>(memory);
}

void Collectives::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

void Collectives::all_reduce(const Request& request) {
  const std::lock_guard lock(mutex_);
  check_open();
  const std::size_t bytes = total_bytes(request);
  const DataType type = request.pieces.front().type;
  std::byte* data = pack(request, bytes);
  attach_hash(request);
  check(
      trireme_all_reduce(groups_.operations, data, static_cast<std::int64_t>(bytes / size_of(type)),
                         dtype_of(type), request.code, nullptr),
      request);
  unpack(request, data);
}

void Collectives::broadcast(const Request& request) {
  const std::lock_guard lock(mutex_);
  check_open();
  const std::size_t bytes = total_bytes(request);
  std::byte* data = pack(request, bytes);
  attach_hash(request);
  check(trireme_barrier(groups_.operations, nullptr), request);
  check(trireme_broadcast(groups_.operations, data, static_cast<std::int64_t>(bytes), request.code,
                          nullptr),
        request);
  unpack(request, data);
}

std::vector<std::int64_t> Collectives::gather_sizes(const Request& request) {
  const Piece& piece = request.pieces.front();
  if (piece.dims.empty() || piece.dims.size() > kMaxDims) {
    throw Failure(Code::kInvalidArgument, "an all_gather takes tensors of 1 to 8 dimensions, not " +
                                              std::to_string(piece.dims.size()));
  }
  Shape mine{.type = static_cast<std::int64_t>(piece.type),
             .num_dims = static_cast<std::int64_t>(piece.dims.size())};
  std::ranges::copy(piece.dims, mine.dims.begin());
  std::vector<Shape> all(static_cast<std::size_t>(num_ranks_));
  const std::vector<std::int64_t> bytes(all.size(), sizeof(Shape));
  check(trireme_all_gather(groups_.operations, &mine, all.data(), bytes.data(), nullptr), request);

  std::vector<std::int64_t> sizes;
  for (const Shape& shape : all) {
    sizes.push_back(shape.dims[0]);
    Shape like_first = shape;
    like_first.dims[0] = all[0].dims[0];
    if (like_first.type == all[0].type && like_first.num_dims == all[0].num_dims &&
        like_first.dims == all[0].dims) {
      continue;
    }
    const auto text = [](const Shape& told) {
      return text_of(static_cast<DataType>(told.type),
                     std::span(told.dims).first(static_cast<std::size_t>(told.num_dims)));
    };
    throw Failure(Code::kInvalidArgument,
                  "all_gather " + request.label + ": rank 0 has " + text(all[0]) + ", rank " +
                      std::to_string(sizes.size() - 1) + " has " + text(shape) +
                      "; ranks may differ in dimension 0 alone");
  }
  return sizes;
}

void Collectives::all_gather(const Request& request,
                             const std::function<void*(std::int64_t)>& allocate) {
  const std::lock_guard lock(mutex_);
  check_open();
  const std::vector<std::int64_t> sizes = gather_sizes(request);
  const Piece& piece = request.pieces.front();
  std::vector<std::int64_t> bytes;
  for (const std::int64_t size : sizes) bytes.push_back(size * row_bytes(piece));
  void* all = allocate(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  check(trireme_all_gather(groups_.operations, piece.input, all, bytes.data(), nullptr), request);
}

std::byte* Collectives::pack(const Request& request, std::size_t bytes) {
  std::byte* data = scratch_;
  if (bytes > static_cast<std::size_t>(groups_.scratch_bytes)) {
    if (request.pieces.size() > 1 && large_.size() < bytes) large_.resize(bytes);
    data = request.pieces.size() > 1 ? large_.data()
                                     : static_cast<std::byte*>(request.pieces.front().output);
  }
  std::byte* next = data;
  for (const Piece& piece : request.pieces) {
    if (piece.bytes != 0) std::memcpy(next, piece.input, piece.bytes);
    next += piece.bytes;
  }
  return data;
}

void Collectives::unpack(const Request& request, const std::byte* data) {
  for (const Piece& piece : request.pieces) {
    if (piece.bytes != 0 && piece.output != data) std::memcpy(piece.output, data, piece.bytes);
    data += piece.bytes;
  }
}

void Collectives::attach_hash(const Request& request) {
  check(trireme_attach_hash(groups_.operations, hash_of(request)), request);
}

void Collectives::check_open() const {
  if (failure_) throw *failure_;
  if (!is_closed_) return;
  throw Failure(Code::kFailedPrecondition,
                "no ranks any more: trireme.tensorflow.shutdown() ended them");
}

void Collectives::check(TriremeStatus status, const Request& request) {
  if (status == kTriremeOk) return;
  std::string text = trireme_last_error();
  Code code = code_of(status);
  // Ranks that differ all get one of these, so that all of them are here.
  if (status == kTriremeInvalidArgument || status == kTriremeCorruptData) {
    const std::string found = difference(request);
    if (!found.empty()) {
      text = found;
      code = Code::kInvalidArgument;
    }
  }
  const std::string label = request.label.empty() ? "" : " " + request.label;
  failure_ = Failure(code, request.operation + label + ": " + text);
  throw *failure_;
}

std::string Collectives::difference(const Request& request) {
  const auto num_ranks = static_cast<std::size_t>(num_ranks_);
  std::string mine = description_of(request);
  mine.resize(kDescriptionBytes);
  std::string all(kDescriptionBytes * num_ranks, '\0');
  const std::vector<std::int64_t> bytes(num_ranks, kDescriptionBytes);
  if (groups_.descriptions == nullptr ||
      trireme_group_set_deadline(groups_.descriptions, kDescriptionDeadlineMs) != kTriremeOk ||
      trireme_all_gather(groups_.descriptions, mine.data(), all.data(), bytes.data(), nullptr) !=
          kTriremeOk) {
    return "";
  }
  const auto told = [&all](std::size_t rank) {
    return std::string(all.c_str() + rank * kDescriptionBytes);
  };
  for (std::size_t rank = 1; rank < num_ranks; ++rank) {
    std::string found = difference_between(told(0), told(rank), static_cast<int>(rank));
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace trireme::tensorflow
