#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/base/json.h"

namespace trireme::kernels::bench {

/// A Python process that runs other libraries' kernels when it is told to:
/// benchmarks/kernels/peers.py. One line of JSON each way.
///
/// Caller-synchronised. Ends with this object.
class PeerProcess {
 public:
  struct Start {
    std::string python;
    std::filesystem::path script;
    int num_threads = 1;
  };

  /// Errors   kUnavailable where it cannot be started.
  explicit PeerProcess(const Start& start);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Makes a peer ready for a case. Runs it once and writes what it made.
  ///
  /// inputs, outputs   safetensors files.
  /// Errors   kUnavailable, saying why, where the peer is not installed; kPeerLost where the
  ///          process has ended; kIo with its error where it failed.
  void load(const std::string& peer, const std::string& name, const std::filesystem::path& inputs,
            const std::filesystem::path& outputs);

  /// Runs what was loaded once; its time in milliseconds.
  double run();

  /// "torchvision 0.29.2", of what was loaded.
  const std::string& version() const { return version_; }

 private:
  Json ask(const Json& question);

  pid_t process_ = -1;
  Descriptor socket_;  ///< Its input and output.
  std::string received_;
  std::string version_;
};

}  // namespace trireme::kernels::bench
