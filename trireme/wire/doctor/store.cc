#include "trireme/wire/doctor/store.h"

#include "trireme/base/error.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/system/interfaces.h"

namespace trireme::doctor {
namespace {

/// Whether a rank at `host` is of use to those who meet at `store`.
bool is_reachable(const std::string& host, const std::string& store) {
  return !transport::is_loopback(host) || transport::is_loopback(store) || store == "localhost";
}

}  // namespace

Finding examine_store(const transport::Address& address, const transport::Token& token,
                      std::chrono::milliseconds patience, const std::string& host) {
  const std::string topic = "store " + to_text(address);
  const auto begin = std::chrono::steady_clock::now();
  try {
    transport::StoreClient client(address, transport::kObserver, {.deadline = patience}, token);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    const std::string chosen = host.empty() ? client.local_host() : host;
    const std::string found =
        "answered after " + std::to_string(time.count()) + " ms; this host is " + chosen + " to it";
    std::string lost;
    try {
      client.check();
    } catch (const Error& error) {
      lost = error.message();
    }
    client.shutdown();
    if (!lost.empty())
      return {topic, Verdict::kBroken, found + "; " + lost, "start the world anew"};
    if (is_reachable(chosen, address.host)) {
      return {topic, Verdict::kGood, found, ""};
    }
    return {
        topic, Verdict::kBroken, found + ", which other hosts cannot reach",
        "set TRIREME_HOST or TRIREME_INTERFACE to what others reach; is the name of the store an "
        "address of the network on this host?"};
  } catch (const Error& error) {
    return {topic, Verdict::kBroken, error.what(),
            "is the rank or launcher that serves it running, at that address, and does a firewall "
            "let this host through?"};
  }
}

}  // namespace trireme::doctor
