#include "trireme/wire/bootstrap/meeting.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/system/interfaces.h"
#include "trireme/wire/system/local_socket.h"
#include "trireme/wire/system/poller.h"
#include "trireme/wire/system/thread.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string name_of_job(const std::string& job_id) {
  return "trireme/" + std::to_string(::getuid()) + "/" + job_id.substr(0, 64);
}

/// One packet from a process of this user; empty where there is none.
std::string ask(const std::string& name, Deadline deadline) {
  const Descriptor socket = internal::try_connect_locally(name);
  if (!socket.is_open() || !internal::is_of_this_user(socket)) return "";
  std::array<std::byte, 512> text{};
  if (!wait_readable(socket, deadline)) return "";
  const std::size_t count = read_some(socket, text).value_or(0);
  return {reinterpret_cast<const char*>(text.data()), count};
}

}  // namespace

class Announcement::Service {
 public:
  Service(const std::string& job_id, std::string text)
      : text_(std::move(text)),
        listener_(internal::listen_locally(name_of_job(job_id))),
        thread_("announcement", [this] { serve(); }) {}

  ~Service() {
    poller_.post([this] { is_stopping_ = true; });
    thread_.join();
  }

 private:
  void serve() {
    try {
      poller_.add(listener_, 1);
      while (!is_stopping_) {
        if (!poller_.wait(Clock::now() + std::chrono::hours(1)).empty()) tell();
      }
    } catch (const std::exception&) {  // who asks finds nobody, and says so at its deadline
      listener_.reset();
    }
  }

  void tell() {
    try {
      const auto socket = accept_from(listener_);
      if (!socket || !internal::is_of_this_user(*socket)) return;
      write_some(*socket, std::as_bytes(std::span(text_)));
    } catch (const Error&) {  // it has gone, or there is no descriptor for it: it asks again
      std::this_thread::sleep_for(milliseconds(20));
    }
  }

  const std::string text_;
  Descriptor listener_;
  Poller poller_;
  bool is_stopping_ = false;
  LibraryThread thread_;
};

Announcement::Announcement(const std::string& job_id, const std::string& text)
    : service_(std::make_unique<Service>(job_id, text)) {}

Announcement::~Announcement() = default;

std::string find_announcement(const std::string& job_id, Deadline deadline) {
  while (true) {
    const Deadline look = std::min(deadline, Clock::now() + milliseconds(500));
    if (std::string text = ask(name_of_job(job_id), look); !text.empty()) return text;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(milliseconds(10));
  }
  throw Error(ErrorKind::kTimeout, "rank 0 of job '" + job_id +
                                       "' has not said on this host where the store is; was it "
                                       "started here? Else set TRIREME_STORE=HOST:PORT");
}

namespace {

/// Where rank 0 listens: at the one address of this host that the store's name leads to. Where there
/// is none such, on all: other hosts may have another address for it than this one, which finds
/// 127.0.1.1 or nothing. Who gets in has the job's token.
Descriptor listen_for_ranks(const Address& store) {
  if (store.host.empty()) return listen_on({});
  if (store.host == "localhost" || is_loopback(store.host)) return listen_on(store);
  const std::vector<std::string> hosts = hosts_of_name(store.host);
  for (const Interface& interface : list_interfaces()) {
    const bool is_named = std::ranges::find(hosts, interface.host) != hosts.end();
    if (is_named && !interface.is_loopback) return listen_on({interface.host, store.port});
  }
  return listen_on_all(store.port);
}

}  // namespace

Meeting meet(const RankEnvironment& environment, Deadline deadline, const Logger& logger) {
  Meeting meeting{.store = {environment.store_host, environment.store_port},
                  .token = token_of_job(environment, logger),
                  .server = nullptr,
                  .announcement = nullptr};
  if (!environment.store_host.empty()) check_may_listen(meeting.token, environment.store_host);
  const bool serves = environment.rank == 0 && environment.launcher != Launcher::kTrireme;
  const bool by_job_id = environment.store_host.empty();
  if (serves) {
    meeting.server =
        std::make_unique<StoreServer>(meeting.token, listen_for_ranks(meeting.store), logger);
  }
  if (by_job_id && serves) {
    meeting.store = meeting.server->address();
    meeting.announcement =
        std::make_unique<Announcement>(environment.job_id, to_text(meeting.store));
  } else if (by_job_id) {
    meeting.store = parse_address(find_announcement(environment.job_id, deadline));
  }
  return meeting;
}

std::string host_of(const RankEnvironment& environment) {
  if (!environment.host.empty()) return environment.host;
  return environment.interface.empty() ? "" : host_of_interface(environment.interface);
}

}  // namespace trireme::transport
