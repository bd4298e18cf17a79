"""Text files that are wrong in some way. Every one holds SECRET, which must never show up in a message."""

SECRET = "Zyxwvut-9731"
S = SECRET.encode()
HEAD = b"sex,age,city\n"

ROWS_ODD: dict[str, bytes] = {
    "too few fields": HEAD + S + b"\nF\nM,3\n",
    "too many fields": HEAD + b"F,1,Rome," + S + b",,,\n" * 3,
    "unclosed quote": HEAD + b'F,1,"' + S + b"\nM,2,Oslo\n",
    "unclosed quote at the end": HEAD + b"F,1,Rome\nM,2," + b'"' + S,
    "quote inside": HEAD + b'F,1,Ro"me' + S + b"\n",
    "text after a quote": HEAD + b'F,1,"Rome"' + S + b"\n",
    "only quotes": HEAD + b'"' * 1001 + S + b"\n",
    "nul bytes": HEAD + b"F\0,1,\0" + S + b"\n\0\0\0\n",
    "latin-1": HEAD + b"F,1,\xe9" + S + b"\n",
    "broken utf-8": HEAD + b"\xc3,\xe2\x82,\xf0\x9f" + S + b"\n",
    "surrogates": HEAD + b"F,1,\xed\xa0\x80" + S + b"\n",
    "byte order mark": b"\xef\xbb\xbf" + HEAD + b"F,1," + S + b"\n",
    "byte order mark inside": HEAD + b"\xef\xbb\xbfF,1," + S + b"\n",
    "mixed line ends": HEAD + b"F,1,Rome\rM,2," + S + b"\r\nF,3,Oslo\n\r\n",
    "carriage returns": HEAD.replace(b"\n", b"\r") + b"F,1," + S + b"\rM,2,Oslo\r",
    "blank lines": b"\n\n" + HEAD + b"\n\n\nF,1," + S + b"\n\n",
    "line ends in a field": HEAD + b'F,1,"' + S + b'\n\r\n,x"\nM,2,Oslo\n',
    "very long field": HEAD + b"F,1," + S * 200_000 + b"\nM,2,Oslo\n",
    "very long quoted field": HEAD + b'F,1,"' + S * 200_000 + b'"\nM,2,Oslo\n',
    "very long line of fields": HEAD + b"F,1,Rome," * 600_000 + S + b"\nM,2,Oslo\n",
    "no line end": HEAD + b"F,1," + S,
    "header alone": HEAD,
    "header without end": HEAD.strip(),
    "numbers out of bounds": HEAD + b"F,1e308," + S + b"\nF,-inf,\nF,nan,\nF,99999999999999999999999999,\nF,0x1F,\n",
    "control characters": HEAD + bytes(range(1, 10)) + b"\x0b\x0c\x1a\x1b" + S + b"\n",
    "another delimiter": HEAD + b"F;1;" + S + b"\nF\t1\tRome\n",
    "formula": HEAD + b"=cmd|'/c calc'!A1,1," + S + b"\n",
    "right to left": HEAD + "\u202eF,\u200b1,\u00a0".encode() + S + b"\n",
    "escaped with backslash": HEAD + b'F,1,"Ro\\"me' + S + b'"\n',
    "extra column": b"sex,age,city,note\nF,1,Rome," + S + b"\n",
    "quoted header": b'"sex","age","city"\nF,1,' + S + b"\n",
}

CONTAINER_WRONG: dict[str, bytes] = {
    "empty": b"",
    "only line ends": b"\n\r\n\n",
    "utf-16": ("sex,age,city\nF,1," + SECRET + "\n").encode("utf-16"),
    "utf-16 without mark": ("sex,age,city\nF,1," + SECRET + "\n").encode("utf-16-le"),
    "utf-32": ("sex,age,city\nF,1," + SECRET + "\n").encode("utf-32"),
    "gzip": b"\x1f\x8b\x08\0\0\0\0\0" + S,
    "no header": b"F,1," + S + b"\n",
    "name twice": b"sex,age,city,sex\nF,1,Rome," + S + b"\n",
    "name missing": b"sex,age\nF," + S + b"\n",
    "name in capitals": b"SEX,AGE,CITY\nF,1," + S + b"\n",
    "several delimiters": b"sex;age|city\nF;1|" + S + b"\n",
    "a page": b"<html><body>" + S + b"</body></html>",
}

PARQUET_WRONG: dict[str, bytes] = {
    "empty": b"",
    "garbage": S * 100,
    "magic alone": b"PAR1",
    "magic twice": b"PAR1PAR1",
    "wrong magic": b"PAR2" + S + b"\x10\0\0\0PAR2",
    "footer too long": b"PAR1" + S + b"\xff\xff\xff\x7fPAR1",
    "footer of garbage": b"PAR1" + S * 4 + b"\x20\0\0\0PAR1",
    "encrypted": b"PARE" + S + b"\x08\0\0\0PARE",
    "text": HEAD + b"F,1," + S,
}
