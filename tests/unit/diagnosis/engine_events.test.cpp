#include "tests/unit/diagnosis/support.hpp"

namespace infernex::diagnosis {

using test::bench;
using vendor = fb::HwVendor;
using kind = fb::HwEventKind;

TEST_CASE("many lines of one XID are one burst") {
  bench b(vendor::Nvidia);
  b.run(3);
  for (int i = 0; i < 100; ++i) b.tell(kind::Xid, 31);
  CHECK(!b.standing("gpu-suspect"));
  b.run(300);
  for (int i = 0; i < 100; ++i) b.tell(kind::Xid, 31);
  CHECK(b.standing("gpu-suspect"));
  CHECK(b.standing("gpu-suspect")->confidence == doctest::Approx(0.6));
}

TEST_CASE("an exception of the same unit is the device's, of different units the application's") {
  bench b(vendor::Nvidia);
  b.run(3);
  b.tell(kind::Xid, 13, fb::HwAssertion::OneOff, fb::HwLevel::Unknown, "GPC 0, TPC 1");
  b.run(300);
  b.tell(kind::Xid, 13, fb::HwAssertion::OneOff, fb::HwLevel::Unknown, "GPC 3, TPC 2");
  CHECK(b.standing("gpu-application-fault"));
  CHECK(!b.standing("gpu-suspect-sm"));
  b.run(300);
  b.tell(kind::Xid, 13, fb::HwAssertion::OneOff, fb::HwLevel::Unknown, "GPC 0, TPC 1");
  CHECK(b.standing("gpu-suspect-sm"));
}

TEST_CASE("an XID goes by its bucket, and a reset clears what needed one") {
  bench b(vendor::Nvidia);
  b.run(3);
  b.tell(kind::Xid, 119);
  REQUIRE(b.standing("nvidia-xid:119"));
  CHECK(b.rules.at("n0", 0).act == action::Isolate);
  b.tell(kind::Xid, 63);
  CHECK(b.rules.book().size() == 1);
  b.tell(kind::DeviceReset);
  CHECK(b.rules.book().size() == 0);
  b.tell(kind::Xid, 94);
  CHECK(b.rules.at("n0", 0).act == action::Watch);
  b.run(700);
  CHECK(b.rules.book().size() == 0);
}

}  // namespace infernex::diagnosis
