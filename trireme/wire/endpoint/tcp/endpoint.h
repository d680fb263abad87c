#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/wire/endpoint/tcp/peer.h"
#include "trireme/wire/system/poller.h"
#include "trireme/wire/system/thread.h"

namespace trireme::transport::internal {

/// What links a rank to the others.
struct Links {
  std::vector<Descriptor> sockets;             ///< By rank; the own one is not used.
  std::map<int, Descriptor> local_sockets;     ///< To ranks of this host, for memory.
  std::vector<int> hosts = {};                 ///< As LocalPeers has them.
  std::unique_ptr<Carrier> carrier = nullptr;  ///< Of large payloads; none: the sockets are.
  std::string path = "tcp";                    ///< As Endpoint has it.
};

/// Endpoint over one connection to each other rank, all served by one thread.
///
/// Public functions post to that thread; the rest is confined to it.
class TcpEndpoint final : public Endpoint,
                          private Notes,
                          private Domains,
                          private Messages,
                          private MatcherLink {
 public:
  using OnAbandon = std::function<void(const Error&)>;

  TcpEndpoint(int rank, Links links, OnAbandon on_abandon);

  /// Without shutdown before, the other ranks lose this one.
  ~TcpEndpoint() override;

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  WorkPtr send(int peer, Tag tag, std::span<const std::byte> data,
               const Envelope& envelope) override;
  WorkPtr recv(int peer, Tag tag, Placement place, Inspection inspect) override;
  Notes& notes() override { return *this; }
  Domains& domains() override { return *this; }
  Messages& messages() override { return *this; }
  void poison(const Error& error) override;
  LocalPeers& local_peers() override { return local_peers_; }
  std::string path() const override { return path_; }
  std::shared_ptr<Failure> shared_failure() const override { return failure_; }
  void shutdown(std::chrono::milliseconds deadline) override;

 private:
  /// The way out: of an orderly end until everyone has said goodbye, of a failed world until
  /// everyone knows the cause.
  struct Ending {
    std::chrono::milliseconds patience;
    Deadline start;
    std::optional<Error> error;
  };

  void tell(int peer, Tag tag, const Envelope& note) override;
  std::optional<Envelope> heard(int peer, Tag tag) const override { return board_.get(peer, tag); }
  bool has_left(int peer) const override { return board_.has_left(peer); }

  std::shared_ptr<Failure> open(const Domain& domain) override { return domains_.open(domain); }
  void close(Tag first_tag) override;
  void fail(Tag first_tag, const Error& error) override;

  // endpoint_messages.cc
  WorkPtr send(const MessageToSend& message) override;
  RecvWorkPtr recv(const MessageToReceive& message) override;
  bool cancel(const RecvWorkPtr& work) override;
  std::vector<WaitingMessage> waiting(Tag domain) override;
  void write_letter(int peer, const Letter& letter) override;
  void send_payload(int peer, Tag tag, PostedSend send) override;
  void recv_payload(int peer, Tag tag, PostedRecv recv) override;
  bool has_gone(int peer) const override;

  std::optional<ProcessMemory> memory_of(int peer) const;
  WorkPtr post_work(int peer, Tag tag, std::function<void(const PendingWorkPtr&)> start);
  void start_work(const PendingWorkPtr& work, Tag tag, std::function<void()> start);
  bool run_on_loop(const std::function<void()>& function);

  // The progress thread.
  void serve();
  void watch_process(int rank);
  void serve_peer(const Poller::Event& event);
  void note_end_of_process(int rank);
  void progress_carrier();
  void write_to_peers();
  void update_interest(int rank, Peer& peer);
  void send_to_self(Tag tag);
  void fail_domain(Tag tag, const Error& error);
  void say_goodbye();
  void leave(std::chrono::milliseconds patience);
  bool has_work() const;
  void attempt(const std::function<void()>& step);
  void fail_world(const Error& error);
  void take_failures(Peer& peer);
  void end_domains(const std::vector<Tag>& failed, const Error& error);
  void tell_failure(Tag first_tag, const Error& error);
  void abandon_works(const Error& error);
  void abandon_carrier(std::vector<PendingWorkPtr>& works);
  void report_if_abandoned();
  bool has_ended();
  void close_all();
  Deadline ending_deadline() const;
  Deadline next_deadline();

  const int rank_;
  const int world_size_;
  const std::shared_ptr<Failure> failure_;  // shared with the works
  LocalPeers local_peers_;
  NoteBoard board_;
  DomainBoard domains_;
  Matcher matcher_;
  Poller poller_;
  const std::unique_ptr<Carrier> carrier_;  ///< May be null.
  const std::string path_;
  std::map<int, Peer> peers_;
  std::map<int, Descriptor> processes_;  ///< Of ranks of this host; readable at their end.
  Liveness liveness_;                    ///< Of the others.
  std::map<Tag, PostedMessages> to_self_;
  OnAbandon on_abandon_;       ///< Until called, or not needed any more.
  std::optional<Error> over_;  ///< Why works fail from now on.
  std::optional<Deadline> failed_at_;
  std::optional<Ending> ending_;
  std::optional<LibraryThread> thread_;
};

}  // namespace trireme::transport::internal
