#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "python/tensorflow_operators/api.h"
#include "trireme/wire.h"

namespace trireme::tensorflow {

/// What ends an operator: a code and text of TensorFlow's kind.
class Failure : public std::runtime_error {
 public:
  Failure(Code code, const std::string& text) : std::runtime_error(text), code(code) {}

  Code code;
};

/// One tensor of an operator, in the host's memory.
struct Piece {
  const void* input;
  void* output;  // the same size; of an all_gather, null
  std::size_t bytes;
  DataType type;
  std::vector<std::int64_t> dims;
};

/// Bytes of one row: of what is behind dimension 0.
std::int64_t row_bytes(const Piece& piece);

/// What a rank asks for; `label` is for messages only.
struct Request {
  std::string operation;
  std::string label;
  std::int32_t code = 0;  // the reduction, or the root
  std::vector<Piece> pieces;
};

/// The groups of an attached world, lent until detach.
struct Groups {
  TriremeGroup* operations;
  TriremeGroup* descriptions;  // where ranks tell each other what they asked for, once it differs
  std::int64_t scratch_bytes;  // of the fused buffer; the same on all ranks
};

/// The collectives of an attached world. Calls block until the operation has ended.
///
/// Threads  safe from any thread; one call after the other.
class Collectives {
 public:
  explicit Collectives(const Groups& groups);

  /// No call goes on, none follows: then the groups may be freed.
  void close();

  /// Every output = the reduction over ranks of its input. All pieces have one dtype.
  ///
  /// Cost     one copy in and one out, and one all_reduce of all bytes: in the memory that ranks
  ///          share, up to scratch_bytes.
  /// Errors   Failure, with what each rank asked for where that differs.
  void all_reduce(const Request& request);

  /// Every output = the root's input.
  void broadcast(const Request& request);

  /// The ranks' tensors, one behind the other along dimension 0, in which alone they may differ.
  ///
  /// allocate  returns the memory for so many rows.
  void all_gather(const Request& request, const std::function<void*(std::int64_t)>& allocate);

 private:
  std::vector<std::int64_t> gather_sizes(const Request& request);
  std::byte* pack(const Request& request, std::size_t bytes);
  static void unpack(const Request& request, const std::byte* data);
  void check_open() const;
  void attach_hash(const Request& request);
  void check(TriremeStatus status, const Request& request);
  std::string difference(const Request& request);

  std::mutex mutex_;
  // All under mutex_.
  Groups groups_;
  std::int32_t num_ranks_ = 0;
  std::byte* scratch_ = nullptr;
  std::vector<std::byte> large_;    // for what does not fit
  std::optional<Failure> failure_;  // the first: it has ended the group
  bool is_closed_ = false;
};

}  // namespace trireme::tensorflow
