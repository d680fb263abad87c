#include "trireme/launch/torchrun_store.h"

#include <functional>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "trireme/error.h"

namespace trireme::launch {
namespace {

std::string key_of(const std::string& generation) { return "trireme/store/" + generation; }

/// Runs `work` on a client of torchrun's store; torch's failures become errors of ours.
void ask(const transport::Address& agent, std::chrono::milliseconds deadline,
         const std::function<void(c10d::TCPStore&)>& work) {
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(agent.port);
    options.isServer = false;
    options.waitWorkers = false;
    options.timeout = deadline;
    c10d::TCPStore store(agent.host, options);
    work(store);
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::kTimeout, "torchrun's store at " + to_text(agent) +
                                         " does not answer: " + error.what_without_backtrace());
  }
}

}  // namespace

void publish_store(const transport::Address& agent, const std::string& generation,
                   const transport::Address& store) {
  const std::string text = to_text(store);
  ask(agent, std::chrono::seconds(30), [&](c10d::TCPStore& client) {
    client.set(key_of(generation), std::vector<std::uint8_t>(text.begin(), text.end()));
  });
}

transport::Address find_store(const transport::Address& agent, const std::string& generation,
                              std::chrono::milliseconds deadline) {
  std::string text;
  ask(agent, deadline, [&](c10d::TCPStore& client) {
    const std::vector<std::uint8_t> value = client.get(key_of(generation));
    text.assign(value.begin(), value.end());
  });
  return transport::parse_address(text);
}

}  // namespace trireme::launch
