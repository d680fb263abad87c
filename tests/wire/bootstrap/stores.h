#pragma once

// A store and connections to it where nobody is kept out.

#include "trireme/wire/bootstrap/store.h"

namespace trireme::transport::test {

/// With the token that all tests know.
class TestStore : public StoreServer {
 public:
  explicit TestStore(const Address& address = {}) : StoreServer(address, Token::for_tests()) {}
};

/// As above.
class TestClient : public StoreClient {
 public:
  TestClient(const Address& address, int rank, const ConnectPolicy& policy = {})
      : StoreClient(address, rank, policy, Token::for_tests()) {}
};

}  // namespace trireme::transport::test
