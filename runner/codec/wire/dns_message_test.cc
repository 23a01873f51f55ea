// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/dns_message.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

std::string Number(uint64_t value, int width) {
  std::string out;
  for (int i = width; i-- > 0;) out += static_cast<char>(value >> (8 * i));
  return out;
}

// Labels and the root behind them.
std::string Name(const std::vector<std::string>& labels) {
  std::string out;
  for (const std::string& label : labels) out += Number(label.size(), 1) + label;
  return out + Number(0, 1);
}

std::string Header(unsigned flags, unsigned questions, unsigned additional = 0) {
  return Number(0x1234, 2) + Number(flags, 2) + Number(questions, 2) + Number(0, 4) +
         Number(additional, 2);
}

std::string Query(const std::string& name, unsigned type = kDnsTypeA) {
  return Header(0x0100, 1) + name + Number(type, 2) + Number(kDnsClassIn, 2);
}

std::string Opt(unsigned udp_bytes, unsigned version = 0) {
  return Number(0, 1) + Number(41, 2) + Number(udp_bytes, 2) + Number(0, 1) + Number(version, 1) +
         Number(0, 2) + Number(0, 2);
}

std::string EdnsQuery(const std::string& records, unsigned count = 1) {
  return Header(0x0100, 1, count) + Name({"a"}) + Number(1, 2) + Number(1, 2) + records;
}

DnsQuery Read(const std::string& message) {
  Result<DnsQuery> query = ParseDnsQuery(message);
  REQUIRE(query.ok());
  return std::move(query).value();
}

TEST_CASE("A query has a name in lower case, a type and a class") {
  DnsQuery query = Read(Query(Name({"Api", "eXample", "com"}), kDnsTypeAaaa));
  CHECK(query.fault == DnsRcode::kNoError);
  CHECK(query.id == 0x1234);
  CHECK(query.recursion_desired);
  CHECK(query.name == "api.example.com");
  CHECK(query.type == kDnsTypeAaaa);
  CHECK(query.query_class == kDnsClassIn);
  CHECK(query.question == Name({"Api", "eXample", "com"}) + Number(28, 2) + Number(1, 2));
  CHECK(query.udp_bytes_max == 512);
}

TEST_CASE("A name that no host can have is no name, so no policy knows it") {
  CHECK(Read(Query(Name({}))).name.empty());
  CHECK(Read(Query(Name({"a.b", "com"}))).name.empty());
  CHECK(Read(Query(Name({std::string("a\0b", 3), "com"}))).name.empty());
  CHECK(Read(Query(Name({"a b"}))).name.empty());
  CHECK(Read(Query(Name({"_a-1", "com"}))).name == "_a-1.com");
}

TEST_CASE("EDNS says how much fits, within bounds") {
  CHECK(Read(EdnsQuery(Opt(1000))).udp_bytes_max == 1000);
  CHECK(Read(EdnsQuery(Opt(65535))).udp_bytes_max == 1232);
  CHECK(Read(EdnsQuery(Opt(0))).udp_bytes_max == 512);
  CHECK(Read(EdnsQuery(Opt(1000))).has_edns);
  CHECK(Read(EdnsQuery(Opt(1000, 1))).fault == DnsRcode::kBadVersion);
  CHECK(Read(EdnsQuery(Opt(1000) + Opt(1000), 2)).fault == DnsRcode::kFormatError);
  CHECK(Read(EdnsQuery("\xc0\x0c" + Opt(1000).substr(1))).fault == DnsRcode::kFormatError);
  CHECK(Read(EdnsQuery("\xc0\x0c" + Number(250, 2) + Opt(0).substr(3))).fault ==
        DnsRcode::kNoError);
}

TEST_CASE("What cannot be answered with addresses is answered with its fault") {
  const std::string fine = Query(Name({"a"}));
  CHECK(Read(Header(0, 0)).fault == DnsRcode::kFormatError);
  CHECK(Read(Header(0, 2) + fine.substr(12) + fine.substr(12)).fault == DnsRcode::kFormatError);
  CHECK(Read(Header(0x2800, 1) + fine.substr(12)).fault == DnsRcode::kNotImplemented);
  CHECK(Read(fine + "x").fault == DnsRcode::kFormatError);
  CHECK(Read(Query("\xc0\x0c")).fault == DnsRcode::kFormatError);
  CHECK(Read(Query(Name({std::string(64, 'a')}))).fault == DnsRcode::kFormatError);
  const std::string label(61, 'a');
  CHECK(Read(Query(Name({label, label, label, label, "aaaaa"}))).fault == DnsRcode::kNoError);
  CHECK(Read(Query(Name({label, label, label, label, "aaaaaa"}))).fault == DnsRcode::kFormatError);
  for (size_t size = 12; size < fine.size(); ++size) {
    CHECK(Read(fine.substr(0, size)).fault == DnsRcode::kFormatError);
  }
  const std::string edns = EdnsQuery(Opt(1000));
  for (size_t size = edns.size() - Opt(0).size(); size < edns.size(); ++size) {
    CHECK(Read(edns.substr(0, size)).fault == DnsRcode::kFormatError);
  }
}

TEST_CASE("What is no query is not answered at all") {
  const std::string fine = Query(Name({"a"}));
  CHECK_FALSE(ParseDnsQuery("").ok());
  CHECK_FALSE(ParseDnsQuery(fine.substr(0, 11)).ok());
  CHECK_FALSE(ParseDnsQuery(Header(0x8000, 1) + fine.substr(12)).ok());
  CHECK_FALSE(ParseDnsQuery(fine + std::string(kDnsMessageBytesMax, 'x')).ok());
}

TEST_CASE("An answer repeats the question and gives the addresses of its type") {
  DnsQuery query = Read(Query(Name({"A", "com"})));
  const std::string v4 = "\xc6\x12\x01\x02";
  std::string answer =
      RenderDnsReply(query, {DnsRcode::kNoError, {v4, std::string(16, 'x')}, 30}, 512);
  CHECK(answer == Number(0x1234, 2) + Number(0x8180, 2) + Number(1, 2) + Number(1, 2) +
                      Number(0, 4) + query.question + "\xc0\x0c" + Number(1, 2) + Number(1, 2) +
                      Number(30, 4) + Number(4, 2) + v4);
}

TEST_CASE("NODATA, NXDOMAIN and REFUSED have no addresses") {
  DnsQuery query = Read(EdnsQuery(Opt(1232)));
  for (DnsRcode rcode : {DnsRcode::kNoError, DnsRcode::kNameError, DnsRcode::kRefused}) {
    std::string answer = RenderDnsReply(query, {rcode, {}, 0}, 512);
    CHECK(answer.substr(2, 10) == Number(0x8180u | static_cast<unsigned>(rcode), 2) + Number(1, 2) +
                                      Number(0, 4) + Number(1, 2));
    CHECK(answer.substr(12) == query.question + Opt(1232));
  }
  CHECK(RenderDnsReply(query, {DnsRcode::kNameError, {"abcd"}, 0}, 512).size() ==
        12 + query.question.size() + 11);
}

TEST_CASE("The fault of a query is its answer") {
  DnsQuery bad = Read(Header(0, 0));
  CHECK(RenderDnsReply(bad, {DnsRcode::kNoError, {"abcd"}, 1}, 512) ==
        Number(0x1234, 2) + Number(0x8081, 2) + Number(0, 8));
  DnsQuery version = Read(EdnsQuery(Opt(1000, 1)));
  std::string answer = RenderDnsReply(version, {}, 512);
  CHECK((answer[3] & 15) == 0);
  CHECK(answer[answer.size() - 6] == 1);  // The upper bits of 16.
}

TEST_CASE("An answer that does not fit is cut off and marked") {
  DnsQuery query = Read(EdnsQuery(Opt(1232)));
  DnsReply answer{DnsRcode::kNoError, std::vector<std::string>(60, "abcd"), 1};
  std::string small = RenderDnsReply(query, answer, 512);
  CHECK(small.size() <= 512);
  CHECK(small.size() > 512 - 16);
  CHECK((static_cast<unsigned char>(small[2]) & 2) == 2);
  std::string whole = RenderDnsReply(query, answer, 1232);
  CHECK(whole.size() == 12 + query.question.size() + 11 + 60 * 16);
  CHECK((static_cast<unsigned char>(whole[2]) & 2) == 0);
}

TEST_CASE("Over TCP a message follows its length") {
  const std::string framed = RenderDnsTcpMessage("hello");
  CHECK(framed == std::string("\x00\x05hello", 7));
  for (size_t size = 0; size < framed.size(); ++size) {
    CHECK_FALSE(FirstDnsTcpMessage(framed.substr(0, size)).value().has_value());
  }
  CHECK(*FirstDnsTcpMessage(framed + "next").value() == "hello");
  CHECK_FALSE(FirstDnsTcpMessage(std::string("\x00\x00", 2)).ok());
  CHECK_FALSE(FirstDnsTcpMessage("\x20\x01").ok());
  CHECK(FirstDnsTcpMessage(std::string("\x20\x00", 2)).ok());
}

}  // namespace
}  // namespace codec
