#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/endpoint/ofi/fabric.h"
#include "trireme/wire/endpoint/tcp/carrier.h"

namespace trireme::transport::internal {

struct CarrierOptions {
  std::size_t min_bytes;        ///< Of a message for the fabric; others take the connection.
  std::size_t max_piece_bytes;  ///< The same on all ranks.

  /// How long the provider may refuse a payload: then its peer is lost. A peer whose fabric cannot
  /// be reached looks like one that is slow.
  std::chrono::milliseconds patience;
};

/// Payloads over libfabric. One moves in pieces, all at once, whose tags are the key and those that
/// follow it: 64 random bits, which only the sender is told, over its connection to this rank. So
/// who can reach the fabric and is not of the job puts nothing into a message, unless it sees
/// what passes: there is no other protection, neither by encryption nor by signature.
class OfiCarrier final : public Carrier {
 public:
  OfiCarrier(std::unique_ptr<Fabric> fabric, const CarrierOptions& options);

  bool takes(std::size_t bytes) const override { return bytes >= options_.min_bytes && bytes > 0; }
  std::uint64_t receive(int peer, std::span<std::byte> memory, PendingWorkPtr work) override;
  void send(int peer, std::uint64_t key, std::span<const std::byte> data,
            PendingWorkPtr work) override;
  bool has_work(int peer) const override;
  void progress() override;
  const Descriptor& descriptor() const override;
  Deadline next_progress() override;
  void abandon(std::vector<PendingWorkPtr>& works) override;

 private:
  /// A payload under way.
  struct Transfer {
    int peer;
    std::uint64_t key;
    std::span<const std::byte> sent;  ///< One of both is empty.
    std::span<std::byte> received;
    PendingWorkPtr work;
    Deadline last_posted{};  ///< When it was started or a piece of it posted.
    std::size_t num_pieces = 0;
    std::size_t num_posted = 0;  ///< Pieces.
    std::size_t num_ended = 0;   ///< Pieces.
    std::size_t num_bytes = 0;   ///< Received.
  };

  void start(Transfer transfer);
  void post(Transfer& transfer);
  bool post_piece(Transfer& transfer);
  void give_up(Transfer& transfer, const std::string& why);
  void end_piece(const Fabric::Completion& completion);
  void end(Transfer& transfer);
  bool has_unposted() const;

  std::unique_ptr<Fabric> fabric_;  ///< Null where it had no rest at its end.
  const CarrierOptions options_;
  const Descriptor none_;
  std::list<Transfer> transfers_;  ///< Their addresses are the contexts of their pieces.
  Trouble trouble_;
  Deadline last_move_;  ///< When a payload was started or a piece ended.
};

}  // namespace trireme::transport::internal
