"""Writes the demo's bank statements: python generate/statements.py. Invented people, correct balances, one bank's habits each."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

BANK = Path(__file__).parent.parent / "repo" / "bank"
Row = tuple[str, str, str]
"""ISO date, text, amount."""


def german(amount: Decimal) -> str:
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def trailing(amount: Decimal) -> str:
    return german(abs(amount)) + ("-" if amount < 0 else "")


def parentheses(amount: Decimal) -> str:
    return f"(£{-amount:,.2f})" if amount < 0 else f"£{amount:,.2f}"


def true_minus(amount: Decimal) -> str:
    return f"{amount:.2f}".replace("-", "\u2212")


def swiss(amount: Decimal) -> str:
    return f"{amount:,.2f}".replace(",", "'")


def french(amount: Decimal) -> str:
    return f"{amount:,.2f}".replace(",", "\u00a0").replace(".", ",")


def balances(opening: str, rows: list[Row]) -> list[Decimal]:
    found, balance = [], Decimal(opening)
    for _, _, amount in rows:
        balance += Decimal(amount)
        found.append(balance)
    return found


def dotted(day: str, year: slice = slice(0, 4)) -> str:
    return f"{day[8:10]}.{day[5:7]}.{day[year]}"


def slashed(day: str, year: slice = slice(0, 4)) -> str:
    return f"{day[8:10]}/{day[5:7]}/{day[year]}"


def save(name: str, lines: list[str], *, encoding: str = "utf-8", end: str = "\n") -> None:
    (BANK / f"{name}.csv").write_bytes((end.join(lines) + end).encode(encoding))


def nordbank() -> None:
    rows: list[Row] = [
        ("2026-04-01", "Weser Immobilien KG;Ladenmiete April", "-1715.00"),
        ("2026-04-02", "PayFast Ltd;Auszahlung KW 13", "2361.48"),
        ("2026-04-07", "Nordwind Getränke GmbH;Rechnung 2026-0371", "-892.50"),
        ("2026-04-10", "Stadtwerke Bremerhaven;Abschlag Strom", "-238.00"),
        ("2026-04-14", "Backhaus Lührs;Rechnungen KW 14", "-481.50"),
        ("2026-04-20", "Gästehaus Seestern;Rechnung R-118", "1249.50"),
        ("2026-04-28", "Mira Okafor;Lohn April", "-1684.20"),
        ("2026-04-30", "Nordbank;Kontoführung", "-9.90"),
    ]
    lines = ["Nordbank Girokonto DE02 2905 0101 0001 2345 67", "Zeitraum: 01.04.2026 - 30.04.2026", ""]
    lines.append("Buchungstag;Empfänger;Verwendungszweck;Betrag;Saldo")
    for (day, text, amount), balance in zip(rows, balances("3418.07", rows), strict=True):
        lines.append(f"{dotted(day)};{text};{german(Decimal(amount))};{german(balance)}")
    save("nordbank-giro", lines, encoding="latin-1", end="\r\n")


def harbour() -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("2026-04-03", "HC-5501", "NORTHSEA FREIGHT HULL", "-64.00"),
        ("2026-04-05", "HC-5502", '"HARBOUR PACKAGING, ALBERT DOCK"', "-1204.80"),
        ("2026-04-08", "HC-5507", "PAYMENT RECEIVED THANK YOU", "1500.00"),
        ("2026-04-14", "HC-5511", "STATIONERS HALL", "-42.10"),
        ("2026-04-21", "HC-5519", "NORTHSEA FREIGHT HULL", "-71.50"),
        ("2026-04-25", "HC-5520", "ANNUAL CARD FEE", "-18.00"),
    ]
    closing = Decimal("-1310.25") + sum(Decimal(row[3]) for row in rows)
    lines = ["Date,Reference,Description,Amount"]
    for day, reference, text, amount in rows:
        shown = parentheses(Decimal(amount))
        lines.append(f"{slashed(day, slice(2, 4))},{reference},{text}," + (f'"{shown}"' if "," in shown else shown))
    lines.append(f'Opening balance,,,"{parentheses(Decimal("-1310.25"))}"')
    lines.append(f'Closing balance,,,"{parentheses(closing)}"')
    save("harbour-card", lines)


def raiffeisen() -> None:
    rows: list[Row] = [
        ("2026-04-02", "Einzahlung Tageskasse", "820.00"),
        ("2026-04-09", "Reparatur Kühltheke Fa. Jansen", "-297.50"),
        ("2026-04-11", "Einzahlung Tageskasse", "1105.00"),
        ("2026-04-16", "Feuerversicherung Q2", "-186.40"),
        ("2026-04-23", "Einzahlung Tageskasse", "940.00"),
        ("2026-04-30", "Habenzinsen", "12.50"),
        ("2026-04-30", "Umbuchung Girokonto", "-2000.00"),
    ]
    lines = ["Beleg;Datum;Text;Umsatz EUR;Saldo EUR"]
    for i, ((day, text, amount), balance) in enumerate(zip(rows, balances("1930.15", rows), strict=True), 301):
        lines.append(f"{i};{dotted(day, slice(2, 4))};{text};{trailing(Decimal(amount))};{trailing(balance)}")
    save("raiffeisen-savings", lines)


def payfast() -> None:
    rows = [
        ("2026-04-03T09:12:44Z", "pf_81c", "Order 7741", "184.00", "-3.91"),
        ("2026-04-06T17:40:02Z", "pf_81d", "Order 7752", "59.90", "-1.49"),
        ("2026-04-08T11:05:31Z", "pf_81e", "Refund order 7752", "-59.90", "0.00"),
        ("2026-04-12T20:18:09Z", "pf_820", "Voucher GIFT-31", "50.00", "-1.30"),
        ("2026-04-15T06:00:00Z", "pf_821", "Payout to Nordbank", "-210.00", "0.00"),
    ]
    balance = Decimal("96.20")
    lines = ["completed_at,transaction,description,gross,fee,net,balance"]
    for moment, reference, text, gross, fee in rows:
        net = Decimal(gross) + Decimal(fee)
        balance += net
        shown = (true_minus(Decimal(x)) for x in (gross, fee, net, balance))
        lines.append(",".join((moment, reference, text, *shown)))
    save("payfast", lines)


def kantonalbank() -> None:
    rows: list[Row] = [
        ("2026-04-01", "Miete Marktstand Basel", "-1250.00"),
        ("2026-04-04", "TWINT Tagesumsatz", "2318.60"),
        ("2026-04-11", "TWINT Tagesumsatz", "1964.35"),
        ("2026-04-13", "Kaeserei Toggenburg", "-1480.75"),
        ("2026-04-18", "TWINT Tagesumsatz", "2105.90"),
        ("2026-04-22", "SBB Frachtbrief 99120", "-126.40"),
        ("2026-04-30", "Spesen", "-15.00"),
    ]
    lines = ["Datum;Buchungstext;Belastung CHF;Gutschrift CHF;Saldo CHF"]
    body = []
    for (day, text, amount), balance in zip(rows, balances("10640.80", rows), strict=True):
        value = Decimal(amount)
        debit, credit = (swiss(-value), "") if value < 0 else ("", swiss(value))
        body.append(f"{dotted(day)};{text};{debit};{credit};{swiss(balance)}")
    save("kantonalbank", lines + body[::-1], end="\r\n")


def mutuel() -> None:
    rows: list[Row] = [
        ("2026-04-02", "PRLV EDF ENTREPRISES", "-143.20"),
        ("2026-04-03", "VIR HOTEL DU PHARE FACT 88", "1860.00"),
        ("2026-04-09", "CB STATION TOTAL BREST", "-78.45"),
        ("2026-04-13", "VIR FROMAGERIE LE GALL", "-1237.50"),
        ("2026-04-17", "PRLV ORANGE PRO", "-49.99"),
        ("2026-04-24", "VIR CREPERIE AVEN FACT 91", "2412.00"),
        ("2026-04-30", "FRAIS TENUE DE COMPTE", "-11.00"),
    ]
    found = balances("4102.33", rows)
    lines = ["Solde initial;;4\u00a0102,33", "Date;Libellé;Montant"]
    lines += [f"{slashed(day)};{text};{french(Decimal(amount))}" for day, text, amount in rows]
    lines.append(f"Solde final;;{french(found[-1])}")
    save("mutuel", lines)


def postbank() -> None:
    rows = [
        ("2026-04-01", "P-1", "Darlehen Rate 17", "-1120.00"),
        ("2026-04-01", "P-2", "Darlehenszinsen", "-86.45"),
        ("2026-04-10", "P-3", "DHL Geschaeftskunden", "-214.20"),
        ("2026-04-15", "P-4", "Lieferdienst Kunden", "3480.75"),
        ("2026-04-22", "P-5", "Privatentnahme Brandt", "-900.00"),
        ("2026-04-29", "P-6", "Lieferdienst Kunden", "2915.10"),
    ]
    plain = [(day, text, amount) for day, _, text, amount in rows]
    lines = ["Nr,Datum,Text,Betrag,S/H,Kontostand"]
    for (day, number, text, amount), balance in zip(rows, balances("5204.90", plain), strict=True):
        sign = "S" if amount.startswith("-") else "H"
        lines.append(f'{number},{day},{text},"{german(abs(Decimal(amount)))}",{sign},"{german(balance)}"')
    save("postbank", lines)


def cashbox() -> None:
    rows: list[Row] = [
        ("2026-04-04", '"Takings, Saturday"', "1284.35"),
        ("2026-04-04", '"Ice for the fish counter\ntwo bags, no receipt"', "-12.00"),
        ("2026-04-07", '"To the bank, 1,000 in notes"', "-1000.00"),
        ("2026-04-11", '"Takings, Saturday"', "1097.80"),
        ("2026-04-11", '"Postage ""registered"" to Kiel"', "-7.65"),
    ]
    lines = ["Voucher,Date,What,In,Out,In the box"]
    for i, ((day, text, amount), balance) in enumerate(zip(rows, balances("240.50", rows), strict=True), 61):
        value = Decimal(amount)
        shown = f'"{abs(value):,.2f}"'
        lines.append(f'K{i},{day},{text},{shown if value > 0 else ""},{shown if value < 0 else ""},"{balance:,.2f}"')
    save("cashbox", lines)


def main() -> None:
    BANK.mkdir(parents=True, exist_ok=True)
    writers: list[Callable[[], None]] = [nordbank, harbour, raiffeisen, payfast, kantonalbank, mutuel, postbank, cashbox]
    for write in writers:
        write()


if __name__ == "__main__":
    main()
