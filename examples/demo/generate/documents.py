"""Writes the demo's documents: python generate/documents.py (needs reportlab, Pillow, python-docx and openpyxl).

The files are committed; this runs only when somebody wants other documents. It writes the same bytes every time.
"""

from __future__ import annotations

import io
import re
import zipfile
from datetime import date
from pathlib import Path

from docx import Document
from openpyxl import Workbook
from openpyxl.styles import Font
from PIL import Image, ImageDraw
from reportlab import rl_config
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

INBOX = Path(__file__).parent.parent / "repo" / "inbox"
rl_config.useA85 = 0
rl_config.invariant = 1


def rewrite_zip(data: bytes) -> bytes:
    """The same archive with fixed times: the office libraries put the present one in."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            info = zipfile.ZipInfo(name, (2026, 5, 4, 9, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            content = old.read(name)
            if name == "docProps/core.xml":
                content = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"2026-05-04T09:00:00Z", content)
            new.writestr(info, content)
    return out.getvalue()


def put(canvas: Canvas, y: float, *pieces: tuple[float, str], bold: bool = False) -> None:
    canvas.setFont("Helvetica-Bold" if bold else "Helvetica", 10)
    for x, text in pieces:
        if x < 0:
            canvas.drawRightString(-x, y, text)
        else:
            canvas.drawString(x, y, text)


def invoice_pdf() -> None:
    pdf = Canvas(str(INBOX / "nordwind-invoice.pdf"), pagesize=A4, pageCompression=1)
    pdf.setTitle("Rechnung 2026-0418")
    put(pdf, 790, (60, "Nordwind Getränke GmbH"), bold=True)
    put(pdf, 775, (60, "Überseestraße 14, 28217 Bremen"))
    put(pdf, 730, (60, "Hafenladen Ida Brandt, Kaiserstraße 3, 27568 Bremerhaven"))
    put(pdf, 690, (60, "Rechnung Nr. 2026-0418"), (400, "Datum: 14.04.2026"), bold=True)
    put(pdf, 672, (60, "Lieferung vom 09.04.2026, Kunde 10734"))
    put(pdf, 640, (60, "Artikel"), (-330, "Menge"), (-430, "Einzelpreis"), (-530, "Betrag EUR"), bold=True)
    y = 622.0
    for name, pieces, price, amount in (
        ("Apfelschorle 0,5 l, Kiste", "48", "9,80", "470,40"),
        ("Rhabarbersaft 1,0 l", "120", "2,15", "258,00"),
        ("Mineralwasser still, Kiste", "96", "5,60", "537,60"),
    ):
        put(pdf, y, (60, name), (-330, pieces), (-430, price), (-530, amount))
        y -= 16
    put(pdf, 560, (300, "Nettobetrag"), (-530, "1.266,00"))
    put(pdf, 544, (300, "zzgl. 19 % USt."), (-530, "240,54"))
    put(pdf, 528, (300, "Rechnungsbetrag"), (-530, "1.506,54"), bold=True)
    put(pdf, 490, (60, "Zahlbar bis 28.04.2026 ohne Abzug auf IBAN DE89 3704 0044 0532 0130 00"))
    pdf.save()


def scan() -> ImageReader:
    """A page as a scanner gives it: grey pixels, no text."""
    page = Image.new("L", (420, 594), 246)
    draw = ImageDraw.Draw(page)
    draw.text((40, 50), "Proof of delivery", fill=60)
    draw.text((40, 90), "2 cartons of lids short - to follow", fill=70)
    draw.line([(40, 300), (90, 270), (130, 310), (190, 280)], fill=50, width=2)
    draw.text((40, 320), "signed J. Petersen 23 April", fill=70)
    return ImageReader(page.rotate(1.2, fillcolor=240).convert("L"))


def delivery_note_pdf() -> None:
    pdf = Canvas(str(INBOX / "harbour-delivery-note.pdf"), pagesize=A4, pageCompression=1)
    pdf.setTitle("Delivery note")
    put(pdf, 790, (60, "Harbour Packaging Ltd, Unit 7, Albert Dock, Hull"), bold=True)
    put(pdf, 750, (60, "DELIVERY NOTE HP-77120"), (380, "Date: 23 April 2026"), bold=True)
    put(pdf, 732, (60, "Your order: PO-3391"), (380, "Carrier: Northsea Freight"))
    put(pdf, 700, (60, "SKU"), (150, "Description"), (-430, "Cartons"), (-530, "Pieces"), bold=True)
    y = 682.0
    for sku, name, cartons, pieces in (
        ("CUP-300", "Paper cup 300 ml", "12", "1,200"),
        ("LID-300", "Lid for CUP-300", "10", "1,000"),
        ("BAG-KR2", "Kraft bag, medium", "5", "2,500"),
    ):
        put(pdf, y, (60, sku), (150, name), (-430, cartons), (-530, pieces))
        y -= 16
    put(pdf, 622, (60, "Total"), (-430, "27"), (-530, "4,700"), bold=True)
    put(pdf, 604, (60, "Gross weight: 186.5 kg"))
    put(pdf, 560, (60, "Page 1 of 2. Signed proof of delivery overleaf."))
    pdf.showPage()
    pdf.drawImage(scan(), 0, 0, A4[0], A4[1])
    pdf.save()


def save_docx(document: Document, name: str) -> None:
    document.core_properties.author = "Hafenladen"
    out = io.BytesIO()
    document.save(out)
    (INBOX / name).write_bytes(rewrite_zip(out.getvalue()))


def table(document: Document, *rows: tuple[str, ...]) -> None:
    grid = document.add_table(rows=0, cols=len(rows[0]))
    grid.style = "Table Grid"
    for row in rows:
        for cell, text in zip(grid.add_row().cells, row, strict=True):
            cell.text = text


def lease_docx() -> None:
    doc = Document()
    doc.add_heading("Lease of business premises", 1)
    doc.add_paragraph("between Weser Immobilien KG, Am Wall 12, 28195 Bremen (the landlord)")
    doc.add_paragraph("and Hafenladen Ida Brandt, Kaiserstraße 3, 27568 Bremerhaven (the tenant)")
    doc.add_heading("1. Premises", 2)
    doc.add_paragraph("The landlord lets the shop on the ground floor of Kaiserstraße 3, of 84.5 square metres.")
    doc.add_heading("2. Term", 2)
    doc.add_paragraph("The lease begins on 1 July 2026 and is made for five years. Notice must be given 6 months before its end.")
    doc.add_heading("3. Rent", 2)
    table(
        doc,
        ("Monthly, in EUR", "Amount"),
        ("Basic rent", "1,450.00"),
        ("Service charges, advance", "265.00"),
        ("Total per month", "1,715.00"),
    )
    doc.add_paragraph("The rent is due on the third working day of each month.")
    doc.add_heading("4. Deposit", 2)
    doc.add_paragraph("The tenant pays a deposit of EUR 4,350.00, which is three times the basic rent.")
    save_docx(doc, "kaiserstrasse-lease.docx")


def offer_docx() -> None:
    doc = Document()
    doc.add_heading("Backhaus Lührs – Angebot", 1)
    doc.add_paragraph("Angebot A-2214 vom 27. April 2026, gültig bis 31. Mai 2026")
    doc.add_paragraph("Liefertage: Dienstag bis Samstag, Anlieferung bis 6:30 Uhr")
    table(
        doc,
        ("Ware", "Stück je Woche", "Preis je Stück", "Summe je Woche"),
        ("Roggenbrot 1000 g", "60", "3,15 €", "189,00 €"),
        ("Franzbrötchen", "150", "1,05 €", "157,50 €"),
        ("Dinkelseele", "80", "1,30 €", "104,00 €"),
        ("Summe netto", "", "", "450,50 €"),
    )
    doc.add_paragraph("Ab der fünften Woche gewähren wir 3 % Skonto bei Zahlung binnen 10 Tagen.")
    save_docx(doc, "luehrs-offer.docx")


def order_html() -> None:
    (INBOX / "lumen-order.html").write_text(
        """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Your order</title>
<style>td { padding: 4px } .sum { font-weight: bold }</style>
</head>
<body>
<h1>Thank you for your order, Ida!</h1>
<p>Order <b>LM-500312</b> was placed on 2 May 2026.</p>
<p>It leaves our warehouse in Utrecht on 5&nbsp;May&nbsp;2026.</p>
<table>
<tr><th>Article</th><th>Qty</th><th>Each</th><th>Sum</th></tr>
<tr><td>LED spot GU10 4.5&nbsp;W</td><td>24</td><td>&euro;3.95</td><td>&euro;94.80</td></tr>
<tr><td>Track rail 2&nbsp;m &amp; feed</td><td>3</td><td>&euro;41.50</td><td>&euro;124.50</td></tr>
<tr><td>Dimmer "Luna"</td><td>2</td><td>&euro;58.00</td><td>&euro;116.00</td></tr>
</table>
<table class="sum">
<tr><td>Goods</td><td>&euro;335.30</td></tr>
<tr><td>Shipping</td><td>&euro;14.90</td></tr>
<tr><td>Total to pay</td><td>&euro;350.20</td></tr>
</table>
<p>Paid by card ending in 4471.</p>
<script>track("LM-500312", 999.99);</script>
</body>
</html>
""",
        encoding="utf-8",
    )


def energy_html() -> None:
    (INBOX / "stadtwerke-bill.html").write_text(
        """<!DOCTYPE html>
<html lang="de">
<head><meta charset="utf-8"><title>Stromrechnung</title></head>
<body>
<h1>Stadtwerke Bremerhaven: Stromrechnung</h1>
<p>Rechnungsnummer 88-410-2207, ausgestellt am 06.05.2026</p>
<h2>Verbrauch</h2>
<table>
<tr><th>Zähler</th><th>Stand alt</th><th>Stand neu</th><th>Verbrauch kWh</th></tr>
<tr><td>1EMH0012447</td><td>41.207</td><td>43.868</td><td>2.661</td></tr>
</table>
<h2>Beträge</h2>
<table>
<tr><td>Arbeitspreis 31,42 ct/kWh</td><td>836,09 €</td></tr>
<tr><td>Grundpreis</td><td>38,50 €</td></tr>
<tr><td>Summe netto</td><td>874,59 €</td></tr>
<tr><td>Umsatzsteuer 19 %</td><td>166,17 €</td></tr>
<tr><td>Rechnungsbetrag brutto</td><td>1.040,76 €</td></tr>
</table>
<p>Wir buchen den Betrag am 20.05.2026 von Ihrem Konto ab.</p>
</body>
</html>
""",
        encoding="utf-8",
    )


def save_xlsx(book: Workbook, name: str) -> None:
    book.properties.creator = "Hafenladen"
    out = io.BytesIO()
    book.save(out)
    (INBOX / name).write_bytes(rewrite_zip(out.getvalue()))


def price_list_xlsx() -> None:
    book = Workbook()
    sheet = book.active
    sheet.title = "Prices"
    sheet["A1"] = "Teehaus Ronnefelder: price list for resellers"
    sheet["A1"].font = Font(bold=True)
    sheet["A2"], sheet["B2"] = "Valid from", date(2026, 6, 1)
    sheet["B2"].number_format = "dd.mm.yyyy"
    sheet["A3"], sheet["B3"] = "Currency", "EUR"
    sheet.append([])
    sheet.append(["SKU", "Tea", "Pack (g)", "Net price"])
    for row in (
        ("T-101", "Assam Bari", 250, 6.9),
        ("T-114", "Darjeeling First Flush", 100, 8.45),
        ("T-120", "Sencha Fukuyu", 100, 5.2),
        ("T-133", "Ostfriesen Blatt", 500, 9.75),
        ("T-140", "Rooibos Vanille", 250, 4.6),
    ):
        sheet.append(row)
    inside = book.create_sheet("Margins")
    inside.append(["SKU", "Our cost"])
    inside.append(["T-101", 3.1])
    inside.sheet_state = "hidden"
    save_xlsx(book, "teahouse-prices.xlsx")


def expenses_xlsx() -> None:
    book = Workbook()
    sheet = book.active
    sheet.title = "Market"
    sheet["A1"] = "Expenses, spring market"
    sheet["A2"], sheet["B2"] = "Claimed by", "Jonas Petersen"
    sheet["A3"], sheet["B3"] = "Cost centre", "MKT-2026-04"
    sheet.append([])
    sheet.append(["Date", "What", "Amount EUR"])
    for day, what, amount in (
        (date(2026, 4, 17), "Stall fee", 140),
        (date(2026, 4, 17), "Van hire", 89.9),
        (date(2026, 4, 18), "Diesel", 46.35),
        (date(2026, 4, 19), "Ice, 40 kg", 27.6),
    ):
        sheet.append([day, what, amount])
        sheet.cell(sheet.max_row, 1).number_format = "yyyy-mm-dd"
    sheet["B10"], sheet["C10"] = "Total", "=SUM(C6:C9)"
    save_xlsx(book, "market-expenses.xlsx")


def main() -> None:
    INBOX.mkdir(parents=True, exist_ok=True)
    for write in (invoice_pdf, delivery_note_pdf, lease_docx, offer_docx, order_html, energy_html, price_list_xlsx, expenses_xlsx):
        write()


if __name__ == "__main__":
    main()
