"""The shop's back office: orders, invoices, products, customers, reviews, coupons, pages and reports."""
