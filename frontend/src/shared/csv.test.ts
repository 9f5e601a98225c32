// @vitest-environment node
import { describe, expect, it } from "vitest";
import { csvCell, toCsv } from "./csv";

describe("csvCell", () => {
  it.each([
    ["plain", "plain"],
    ['say "hi", twice', '"say ""hi"", twice"'],
    ["two\nlines", '"two\nlines"'],
    [null, ""],
    [12, "12"],
    ["-0.5", "-0.5"],
    ["=SUM(A1)", "'=SUM(A1)"],
    ["+1+2", "'+1+2"],
    ["-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"],
    ["@SUM(1,2)", '"\'@SUM(1,2)"'],
    ["\t=1", "'\t=1"],
    ["\r=1", '"\'\r=1"'],
  ])("%j -> %j", (value, cell) => {
    expect(csvCell(value)).toBe(cell);
  });
});

it("ends every record with CRLF", () => {
  expect(toCsv(["a", "b"], [["x", 1]])).toBe("a,b\r\nx,1\r\n");
});
